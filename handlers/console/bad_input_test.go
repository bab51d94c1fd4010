package console_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"switchyard/internal/browsertest"
)

// TestBadInputIsSaidAtTheField: a refused form shows why at the field, focuses it, and keeps what was typed in all fields except
// secrets.
func TestBadInputIsSaidAtTheField(t *testing.T) {
	s := newStorySite(t, true, map[string]string{"2_current/1_story_one.md": "# One\n"})
	long := strings.Repeat("x", 1001)
	for _, c := range []struct {
		path, fields, wrong, says string
	}{
		{"/projects", "name=|url=localhost:1", "name", "Must not be empty."},
		{"/projects", "name=a\x01b|url=localhost:1", "name", "Must not contain control characters."},
		{"/projects", "name=" + strings.Repeat("x", 65<<10) + "|url=localhost:1", "name", "Must be at most 100 characters."},
		{"/projects", "name=webshop|url=localhost:1", "name", "already exists."},
		{"/projects", "name=a|url=", "url", "Must not be empty."},
		{"/projects", "name=a|url=ftp://a", "url", "Must begin with http:// or https://."},
		{"/projects", "name=a|url=localhost:1|token=a\x01b", "token", "Must be ASCII characters"},
		{"/projects/webshop", "url=", "url", "Must not be empty."},
		{"/projects/webshop", "url=http://a|token=a b", "token", "Must be ASCII characters"},
		{"/projects/webshop/stories", "name=", "name", "Must not be blank."},
		{"/projects/webshop/stories", "name=" + long, "name", "Must be at most 1000 characters."},
		{"/projects/webshop/stories", "name=a\x01b", "name", "Must not contain control characters."},
		{"/agents", "label=a\x01b|project=webshop|command=make", "label", "Must not contain control characters."},
		{"/agents", "label=a|project=webshop|command=" + long, "command", "Must be at most 1000 characters."},
		{"/agents", "label=a|project=webshop|command=make\x1b[2J", "command", "Must not contain control characters."},
		{"/access", "name=|role=viewer", "name", "Must not be empty."},
		{"/access", "name=a\x01b|role=operator", "name", "Must not contain control characters."},
		{"/access", "name=a|role=root", "role", "Must be viewer, operator, admin or wall."},
		{"/access", "name=a|role=viewer|expires_in=soon", "expires_in", "Must be a duration"},
	} {
		var fields []string
		for _, field := range strings.Split(c.fields, "|") {
			name, value, _ := strings.Cut(field, "=")
			fields = append(fields, name, value)
		}
		answer := s.Submit(c.path, fields...)
		what := fmt.Sprintf("%s %.60q", c.path, c.fields)
		if made := c.path == "/agents"; !made && answer.StatusCode/100 != 4 || made && answer.StatusCode != http.StatusOK { // the line is shown nevertheless
			t.Errorf("%s: status %d", what, answer.StatusCode)
		}
		input := regexp.MustCompile(`<(?:input|select)[^>]* aria-invalid="true"[^>]*>`).FindAllString(answer.Text, -1)
		if len(input) != 1 || !strings.Contains(input[0], `name="`+c.wrong+`"`) || strings.Count(input[0], "autofocus") != 1 {
			t.Errorf("%s: the field at fault is %.300q", what, input)
			continue
		}
		message := regexp.MustCompile(`aria-errormessage="([^"]*)"`).FindStringSubmatch(input[0])
		if said := regexp.MustCompile(`<p id="` + message[1] + `"[^>]*>([^<]*)`).FindStringSubmatch(answer.Text); said == nil || !strings.Contains(said[1], c.says) {
			t.Errorf("%s says %.200q, want %q", what, said, c.says)
		}
		for i := 0; i < len(fields); i += 2 {
			if value := fields[i+1]; strings.ContainsAny(value, "\x01\x1b") || value == "" || fields[i] == "token" || fields[i] == c.wrong && strings.Contains("role expires_in", c.wrong) {
				continue
			} else if !strings.Contains(answer.Text, `value="`+value+`"`) {
				t.Errorf("%s: %s is not kept", what, fields[i])
			}
		}
	}
	if n := len(s.Projects.Registry().Projects); n != 1 {
		t.Errorf("%d projects", n)
	}
}

// TestWhatIsTypedSurvivesTheBackButtonAndAnotherTab, and an action on what another tab has removed is refused, not half done.
func TestWhatIsTypedSurvivesTheBackButtonAndAnotherTab(t *testing.T) {
	browsertest.Parallel(t)
	s := sampleSite(t)
	tab := browsertest.Open(t)
	tab.Goto(s.URL + "/projects")
	tab.Find("textbox", "URL").Type("nonsense" + kb.Tab + "delta" + kb.Enter)
	tab.WaitText("Must begin with http:// or https://.")
	tab.Find("link", "Agents").Click()
	tab.Find("heading", "Agents")
	browsertest.Eval[bool](tab, "history.back(), true")
	tab.Find("heading", "Projects") // a refused form is not an entry in the history
	if path := browsertest.Eval[string](tab, "location.pathname"); path != "/projects" {
		t.Errorf("back at %s", path)
	}

	tab.Find("button", "Actions for beta").Click()
	remove := tab.Find("button", "Remove")
	if _, err := s.Projects.Remove(t.Context(), "beta"); err != nil { // in another tab
		t.Fatal(err)
	}
	remove.Call(`function() { this.click() }`)
	browsertest.Eval[bool](tab, `document.querySelector(':popover-open form')?.requestSubmit() ?? true`)
	// Either answer is right; the list of projects in the header stays as the page was loaded.
	tab.Wait(`document.querySelector('h1').textContent === 'Not found' || !document.getElementById('main').innerText.includes('beta')`)
	if names := s.Projects.Registry().Projects; len(names) != 2 {
		t.Errorf("%d projects", len(names))
	}

	// A name or a reason that the service would refuse is refused by the browser, at its field.
	agent := s.join("builder-1")
	tab.Goto(s.URL + "/agents")
	tab.Find("button", "Actions for builder-1").Click()
	tab.Find("button", "Rename").Click()
	tab.Find("textbox", "Label").Call("function() { this.value = 'a\\u0001b' }")
	tab.Find("button", "Save").Click()
	tab.Wait(`document.activeElement.matches(':popover-open input:invalid') && document.activeElement.value === 'a\u0001b'`)
	tab.Keys("builder-2" + kb.Enter)
	if known, _ := s.Agents.Find(agent.ID); known.Label != "builder-1" {
		t.Errorf("the agent is called %q", known.Label)
	}
	tab.Complaints() // of the refusals
}
