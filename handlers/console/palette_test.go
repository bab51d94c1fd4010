package console_test

import (
	"html"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp/kb"

	"switchyard/internal/browsertest"
)

var tags = regexp.MustCompile(`<[^>]*>|\s+`)

// palette returns the palette's options for a text, each with its verb, name and second line; those that cannot be done in
// brackets.
func (s *storySite) palette(t *testing.T, text string, more ...string) (options []string) {
	t.Helper()
	query := url.Values{"q": {text}, "here": {"/"}}
	for i := 0; i < len(more); i += 2 {
		query.Set(more[i], more[i+1])
	}
	answer := s.Get("/palette?"+query.Encode(), "HX-Request", "true").WantStatus(t, http.StatusOK)
	for _, part := range strings.Split(answer.Text, `<div role="option"`)[1:] {
		part, _, _ = strings.Cut(part, "<form")
		attributes, content, _ := strings.Cut(part, ">")
		content, _, _ = strings.Cut(strings.ReplaceAll(content, "<small>", " | "), "</small>")
		content = strings.NewReplacer("<mark>", "", "</mark>", "").Replace(content)
		option := strings.Join(strings.Fields(html.UnescapeString(tags.ReplaceAllString(content, " "))), " ")
		if strings.Contains(attributes, "aria-disabled") {
			option = "[" + option + "]"
		}
		options = append(options, option)
	}
	return options
}

func wantFirst(t *testing.T, got []string, want ...string) {
	t.Helper()
	for i, option := range want {
		if i >= len(got) || !strings.HasPrefix(got[i], option) {
			t.Fatalf("option %d is not %q:\n%s", i, option, strings.Join(got, "\n"))
		}
	}
}

func TestPaletteFindsAndActs(t *testing.T) {
	t.Parallel()
	s := newStorySite(t, true, map[string]string{
		"2_current/109_story_login.md": "# Login: remember the company\n\nA needle.\n",
		"3_qa/38_story_form.md":        "---\nname: Login form\nblocked: waiting for design\n---\n",
	})
	s.Add("search", "http://127.0.0.1:1")
	s.join("builder-1")
	story := "/projects/webshop/stories/109_story_login"
	onStory := []string{"here", story}

	wantFirst(t, s.palette(t, "login"), "Open 38 Login form | webshop · QA · blocked", "Open 109 Login: remember the company | webshop · Current")
	if all := s.palette(t, "login"); !slices.Contains(all, "Open all 3 results for “login” | as a page") {
		t.Errorf("no way to all results: %q", all)
	}
	wantFirst(t, s.palette(t, "needle"), "Open 109 Login: remember the company | A needle. · webshop · Current")
	wantFirst(t, s.palette(t, "move 109 qa"), "Move to QA | from Current")
	wantFirst(t, s.palette(t, "move 109"), "Move to QA | from Current", "Move to Backlog | back, 1 stage", "Move to Merge | skips QA")
	wantFirst(t, s.palette(t, "move mer", onStory...), "Move to Merge | skips QA")
	wantFirst(t, s.palette(t, "move login"), "Move to", "Move to")
	wantFirst(t, s.palette(t, "block 109 waiting for the key"), "Block 109 Login: remember the company | because: waiting for the key")
	wantFirst(t, s.palette(t, "block no reason to wait", onStory...), "Block 109 Login: remember the company | because: no reason to wait")
	wantFirst(t, s.palette(t, "block 109"), "[Block 109 Login: remember the company | Type the reason.]")
	wantFirst(t, s.palette(t, "unblock login"), "Unblock 38 Login form | webshop · QA · waiting for design")
	wantFirst(t, s.palette(t, "unblock"), "Unblock 38 Login form")
	wantFirst(t, s.palette(t, "unblock", onStory...), "[Unblock 109 Login: remember the company | It is not blocked.]")
	wantFirst(t, s.palette(t, "assign build webs"), "Assign builder-1 to webshop")
	wantFirst(t, s.palette(t, "assign webshop"), "Assign builder-1 to webshop")
	wantFirst(t, s.palette(t, "acknowledge form"), "Acknowledge 38 Login form | Blocked in webshop · QA")
	wantFirst(t, s.palette(t, "switch to sea"), "Switch to search | project · ")
	wantFirst(t, s.palette(t, "open waiting lon"), "Open Waiting longest")
	wantFirst(t, s.palette(t, "", onStory...), "Move to … | Current now", "Block … with a reason", "Assign an agent …")
	wantFirst(t, s.palette(t, "", "project", "webshop", "story", "38_story_form"), "Move to …", "Block …", "Unblock 38 Login form")
	wantFirst(t, s.palette(t, ""), "Open Waiting longest")
	s.Get("/palette?q="+strings.Repeat("x", 201)).WantStatus(t, http.StatusBadRequest)
	for _, text := range []string{"move", "move nothing at all like it", "block", "assign nobody", "answer 9", "ack", "switch", "go", "<b>", "%", "move 109 nowhere"} {
		s.palette(t, text)
		s.palette(t, text, onStory...)
	}
}

func TestPaletteSaysWhyAStoryCannotBeChanged(t *testing.T) {
	t.Parallel()
	s := newStorySite(t, false, map[string]string{"2_current/109_story_login.md": "# Login\n"})
	wantFirst(t, s.palette(t, "move 109"), "[Move to QA | Its project server does not allow changes.]")
}

// openPalette waits until the palette shows the options for the text.
func openPalette(tab *browsertest.Tab, text string) {
	tab.Helper()
	tab.Wait(`document.querySelector('#palette[open]')`)
	tab.Find("combobox", "Find or do something").Type(text)
}

// TestNoTapOnThePaletteIsLost: what is found while a finger is down is shown once it is lifted, and the tap acts on what it hit.
func TestNoTapOnThePaletteIsLost(t *testing.T) {
	browsertest.Parallel(t)
	s := newStorySite(t, true, map[string]string{"2_current/109_story_login.md": "# Login\n", "3_qa/38_story_form.md": "# Form\n"})
	tab := browsertest.Open(t)
	tab.Phone()
	tab.Goto(s.URL + "/")
	tab.Find("link", "Find").Tap()
	openPalette(tab, "login")
	tab.Wait(`document.querySelector('#palette-list [data-for="login"]')`)
	at := browsertest.Eval[[]float64](tab, `(() => {
		document.getElementById('palette').addEventListener('htmx:afterRequest', () => { window.answered = true })
		const box = document.querySelector('#palette-list [role=option]').getBoundingClientRect()
		return [box.left + box.width / 2, box.top + box.height / 2]
	})()`)
	touch := func(kind input.DispatchTouchEventType) { tab.TouchAt(kind, at[0], at[1]) }
	touch(input.DispatchTouchEventTypeTouchStart)
	browsertest.Eval[bool](tab, `(() => {
		const field = document.querySelector('#palette [role=combobox]')
		field.value = 'form'
		return field.dispatchEvent(new Event('input', {bubbles: true}))
	})()`)
	tab.Wait(`window.answered`)
	if browsertest.Eval[bool](tab, `document.querySelector('#palette-list [data-for="form"]') !== null`) {
		t.Error("the list has changed under the finger")
	}
	touch(input.DispatchTouchEventTypeTouchEnd)
	tab.Find("heading", "Login")
}

func TestBrowserPaletteDoesWhatIsTyped(t *testing.T) {
	browsertest.Parallel(t)
	s := newStorySite(t, true, map[string]string{
		"2_current/109_story_login.md": "# Login: remember the company\n",
		"3_qa/38_story_form.md":        "---\nname: Login form\nblocked: waiting for design\n---\n",
	})
	tab := browsertest.Open(t)
	tab.Goto(s.URL + "/")
	tab.Find("heading", "Overview")
	openKey := `document.dispatchEvent(new KeyboardEvent('keydown', {key: 'k', ctrlKey: true, bubbles: true, cancelable: true}))`
	browsertest.Eval[bool](tab, openKey)
	openPalette(tab, "move login") // where one goes, and whether another is meant, are two things
	tab.Find("option", "Move 109 Login: remember the company webshop · Current")
	tab.Find("option", "Move to Current back, 1 stage")
	tab.Keys(kb.Escape)
	tab.Wait(`!document.querySelector('#palette[open]')`)
	browsertest.Eval[bool](tab, openKey)
	openPalette(tab, "move 109 qa"+kb.Enter) // before the options are there
	tab.WaitText("Moved to QA.")
	if s.file("3_qa/109_story_login.md") == "" {
		t.Error("the story has not moved")
	}
	tab.Find("button", "Undo").Click()
	tab.WaitText("Moved to Current.")

	tab.Keys("/")
	openPalette(tab, "block waiting")
	tab.Find("option", "Block 109 Login: remember the company because: waiting")
	if tag := browsertest.Eval[string](tab, `document.getElementById('palette-tag').textContent`); tag != "block" {
		t.Errorf("the tag is %q", tag)
	}
	tab.Keys(kb.Escape)
	tab.Wait(`!document.querySelector('#palette[open]')`)

	// Tab offers what can be done with the story that is found.
	browsertest.Eval[bool](tab, openKey)
	openPalette(tab, "form")
	tab.Wait(`document.querySelector('[aria-selected="true"]')?.dataset.story === '38_story_form'`)
	tab.Keys(kb.Tab)
	tab.Find("option", "Unblock 38 Login form webshop · QA · waiting for design")
	tab.Accessible()
	tab.Keys(kb.ArrowDown + kb.ArrowDown + kb.Enter)
	tab.WaitText("No longer blocked.")
	if s.file("2_current/109_story_login.md") == "" {
		t.Error("Enter also pressed Undo, which had the focus before")
	}

	tab.Goto(s.URL + "/projects")
	tab.Find("searchbox", "Find a story, project, agent").Type("login form" + kb.Enter)
	tab.Find("heading", "Login form")
	for _, width := range []int64{360, 720, 1280} {
		tab.Size(width, 800)
		browsertest.Eval[bool](tab, openKey)
		openPalette(tab, "login")
		tab.Wait(`document.querySelectorAll('#palette .option').length >= 3`)
		if wide := browsertest.Eval[int64](tab, `document.getElementById('palette').getBoundingClientRect().right`); wide > width {
			t.Errorf("at %d px the palette ends at %d px", width, wide)
		}
		tab.AccessibleAt(width)
		tab.Keys(kb.Escape)
	}
}
