package console_test

import (
	"html"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"

	"switchyard/internal/browsertest"
	"switchyard/internal/domain"
	"switchyard/internal/gatewaytest"
)

// follow follows the redirect in a form's answer.
func (s *consoleSite) follow(a gatewaytest.Answer) gatewaytest.Answer {
	s.Helper()
	a.WantStatus(s, http.StatusSeeOther)
	return s.Get(a.Header.Get("Location")).WantStatus(s, http.StatusOK)
}

func TestAddingAProject(t *testing.T) {
	s := newConsoleSite(t)
	added := s.Submit("/projects", "name", "  alpha ", "url", " http://127.0.0.1:3001 ", "token", "secret-1")
	s.follow(added).WantText(t, "alpha is added.", "alpha", "http://127.0.0.1:3001")
	s.Get("/projects").WantNoText(t, "is added", "secret-1")
	project, _ := s.Projects.Registry().Find("alpha")
	if project.Token.Reveal() != "secret-1" {
		t.Errorf("token %q", project.Token.Reveal())
	}
}

func TestARefusedProjectKeepsWhatWasTyped(t *testing.T) {
	s := newConsoleSite(t)
	s.add("alpha", nil)
	for _, test := range []struct {
		name, url string
		status    int
		field     string
		message   string
	}{
		{"", "http://127.0.0.1:1", http.StatusBadRequest, "name", "Must not be empty."},
		{"beta", "ftp://127.0.0.1", http.StatusBadRequest, "url", "Must begin with http:// or https://."},
		{"alpha", "http://127.0.0.1:2", http.StatusConflict, "name", "Project &#39;alpha&#39; already exists."},
	} {
		a := s.Submit("/projects", "name", test.name, "url", test.url, "token", "secret-1").WantStatus(t, test.status)
		a.WantText(t, `value="`+test.url+`"`, `value="`+test.name+`"`)
		a.WantText(t, `aria-invalid="true"`, `id="`+test.field+`-error"`, test.message)
		a.WantNoText(t, "secret-1")
		if a.Header.Get("ETag") != "" || a.Header.Get("HX-Replace-Url") != "false" {
			t.Errorf("headers %v", a.Header)
		}
	}
	if n := len(s.Projects.Registry().Projects); n != 1 {
		t.Errorf("%d projects", n)
	}
}

func TestSwitchingAndUndoingIt(t *testing.T) {
	s := newConsoleSite(t)
	s.add("alpha", nil)
	s.add("beta", nil)
	s.follow(s.Submit("/switch", "project", "alpha", "next", "/projects")).WantText(t, "alpha is the active project.")
	page := s.follow(s.Submit("/switch", "project", "beta", "next", "/projects")).WantText(t, "beta is the active project.", "Undo")
	if s.Projects.Registry().Active != "beta" {
		t.Errorf("active is %q", s.Projects.Registry().Active)
	}
	s.follow(s.submitUndo(page))
	if s.Projects.Registry().Active != "alpha" {
		t.Errorf("active is %q", s.Projects.Registry().Active)
	}
	s.Submit("/switch", "project", "none").WantStatus(t, http.StatusNotFound).WantText(t, "Not found</h1>")
}

// submitUndo sends the Undo form in the page's notice.
func (s *consoleSite) submitUndo(page gatewaytest.Answer) gatewaytest.Answer {
	s.Helper()
	_, notice, _ := strings.Cut(page.Text, `id="notice"`)
	notice, _, _ = strings.Cut(notice, "</form>")
	action := regexp.MustCompile(`action="([^"]*)"`).FindStringSubmatch(notice)
	var fields []string
	for _, field := range regexp.MustCompile(`name="([^"]*)" value="([^"]*)"`).FindAllStringSubmatch(notice, -1) {
		fields = append(fields, field[1], html.UnescapeString(field[2]))
	}
	if action == nil || len(fields) == 0 {
		s.Fatalf("no undo on the page\n%s", page.Text)
	}
	return s.Submit(action[1], fields...)
}

func TestRemovingAndUndoingIt(t *testing.T) {
	s := newConsoleSite(t)
	token := domain.Secret("secret-1")
	if _, err := s.Projects.Add(t.Context(), "a/b c", "http://127.0.0.1:3001", &token); err != nil {
		t.Fatal(err)
	}
	if err := s.Projects.Switch(t.Context(), "a/b c"); err != nil {
		t.Fatal(err)
	}
	name, agent := "a/b c", s.join("builder-1")
	if _, err := s.Agents.Assign(t.Context(), agent.ID, name); err != nil {
		t.Fatal(err)
	}
	s.Get("/projects").WantText(t, `action="/projects/a%2Fb%20c/remove"`)
	page := s.follow(s.Submit("/projects/a%2Fb%20c/remove")).WantText(t, "a/b c is removed.", "Undo")
	if r := s.Projects.Registry(); len(r.Projects) != 0 || r.Active != "" {
		t.Errorf("left: %v", r)
	}
	page.WantNoText(t, "secret-1")
	s.follow(s.submitUndo(page)).WantText(t, "a/b c is back. An agent is assigned to it again.")
	if a, _ := s.Agents.Find(agent.ID); a.Project != name {
		t.Error("its agent has not come back")
	}
	project, _ := s.Projects.Registry().Find("a/b c")
	if project.Token != token || s.Projects.Registry().Active != "a/b c" {
		t.Errorf("%v, active %q", project.Token.Reveal(), s.Projects.Registry().Active)
	}
	s.submitUndo(page).WantStatus(t, http.StatusNotFound).WantText(t, "can no longer be undone")
	s.Submit("/projects/none/remove").WantStatus(t, http.StatusNotFound)
}

func TestChangingAProject(t *testing.T) {
	s := newConsoleSite(t)
	s.add("alpha", nil)
	token := func() string {
		project, _ := s.Projects.Registry().Find("alpha")
		return project.Token.Reveal()
	}
	s.follow(s.Submit("/projects/alpha", "url", "http://127.0.0.1:4001", "token", "secret-1")).
		WantText(t, "The settings are saved.", `value="http://127.0.0.1:4001"`, "One is stored and never shown.")
	if token() != "secret-1" {
		t.Errorf("token %q", token())
	}
	s.follow(s.Submit("/projects/alpha", "url", "http://127.0.0.1:4001/board", "token", ""))
	if token() != "secret-1" {
		t.Errorf("an empty field changed the token to %q", token())
	}
	s.follow(s.Submit("/projects/alpha", "url", "http://127.0.0.1:4002", "forget_token", "yes"))
	if token() != "" {
		t.Errorf("token %q", token())
	}
	s.Submit("/projects/alpha", "url", "nonsense").WantStatus(t, http.StatusBadRequest).
		WantText(t, `value="nonsense"`, "Must begin with http:// or https://.")
	s.Submit("/projects/none", "url", "http://127.0.0.1:4002").WantStatus(t, http.StatusNotFound)
}

func TestOversizedAndForeignForms(t *testing.T) {
	s := newConsoleSite(t)
	s.Submit("/projects", "name", strings.Repeat("x", 1<<20)).WantStatus(t, http.StatusRequestEntityTooLarge)
	s.Do(http.MethodPost, "/projects", "name=%zz", "Content-Type", "application/x-www-form-urlencoded").WantStatus(t, http.StatusBadRequest)
	s.Do(http.MethodPost, "/projects", "name=x&url=http://x", "Content-Type", "application/x-www-form-urlencoded",
		"Sec-Fetch-Site", "cross-site").WantStatus(t, http.StatusForbidden)
	if n := len(s.Projects.Registry().Projects); n != 0 {
		t.Errorf("%d projects", n)
	}
}

func TestAddingAProjectSaysWhatAnswersThere(t *testing.T) {
	s := newConsoleSite(t)
	s.Submit("/check-address", "url", "").WantStatus(t, http.StatusOK).WantNoText(t, "answers")
	s.Submit("/check-address", "url", "nonsense").WantText(t, "Must begin with http:// or https://.")
	s.Submit("/check-address", "url", "localhost:3001").WantText(t, "signal-caution", "No project server answers at http://localhost:3001. Nothing is running at its address. Start its project server, or correct the address.")

	s.boards.set("", board("1_backlog: 1_story_a, 2_story_b", "2_current:"))
	s.Submit("/check-address", "url", "localhost:3001").WantText(t, "signal-clear", "A project server answers, with 2 stages and 2 stories.")
	page := s.follow(s.Submit("/projects", "name", "alpha", "url", "localhost:3001"))
	page.WantText(t, "alpha is added. It is the active project. A project server answers, with 2 stages and 2 stories.", "http://localhost:3001")
	if active := s.Projects.Registry().Active; active != "alpha" {
		t.Errorf("active: %q", active)
	}

	s.boards.remove("")
	page = s.follow(s.Submit("/projects", "name", "beta", "url", "localhost:3002"))
	page.WantText(t, "signal-caution", "beta is added. No project server answers at http://localhost:3002. Nothing is running at its address.", `action="/projects/beta/remove"`, "Remove it again")
	if active := s.Projects.Registry().Active; active != "alpha" {
		t.Errorf("active: %q", active)
	}
}

func TestTheWorstProjectIsListedFirstAndTheListCanBeSorted(t *testing.T) {
	s := newConsoleSite(t)
	now := time.Now()
	quiet := board("1_backlog", "2_current: 1_story_a, 2_story_b", "3_done")
	s.add("alpha", quiet)
	halted := board("1_backlog", "2_current: 7_story_c!a key is missing", "3_done")
	s.add("beta", halted)
	s.move("alpha", "1_story_a", "1_backlog", "2_current", now)
	for path, order := range map[string][]string{
		"/projects":           {`href="/projects/beta"`, "1 blocked", "Backlog: 0, Current: 1, Done: 0", `href="/projects/alpha"`, "clear"},
		"/projects?sort=name": {`aria-sort="ascending"`, `href="/projects/alpha"`, `href="/projects/beta"`},
		"/projects?sort=work": {`href="/projects/alpha"`, `href="/projects/beta"`},
		"/projects?sort=x":    {`href="/projects/beta"`, `href="/projects/alpha"`},
	} {
		s.Get(path).WantText(t, order...)
	}
	s.Get("/projects?sort=name").WantText(t, `data-hx-get="/projects?sort=name&amp;v=`)
}

// TestTheLastMoveIsOneThatIsKnown: a story that was always where it is has not moved, however old its file.
func TestTheLastMoveIsOneThatIsKnown(t *testing.T) {
	s := newConsoleSite(t)
	still := board("1_backlog", "2_current: 1_story_a", "3_done")
	still[1].Items[0].Since = time.Now().Add(-2 * time.Hour)
	s.add("still", still)
	s.add("moved", board("1_backlog", "2_current: 7_story_c", "3_done"))
	s.move("moved", "7_story_c", "1_backlog", "2_current", time.Now().Add(-40*time.Minute))
	s.Pipelines.All(t.Context(), 0)
	s.Get("/projects?sort=move").WantText(t, `href="/projects/moved"`, `data-label="Last move"`, "40 min ago",
		`href="/projects/still"`, `data-label="Last move"><span class="text-muted">–</span>`)
}

func TestProjectsAreChosenByTheirState(t *testing.T) {
	s := newConsoleSite(t)
	s.add("busy", board("1_backlog", "2_current: 1_story_a", "3_done"))
	s.add("halted", board("1_backlog", "2_current: 7_story_c!a key is missing", "3_done"))
	s.add("quiet", board("1_backlog: 2_story_b", "2_current", "3_done"))
	busy, halted, quiet := `href="/projects/busy"`, `href="/projects/halted"`, `href="/projects/quiet"`
	s.Get("/projects").WantText(t, `aria-current="true">All <span class="n">3<`, `href="/projects?show=troubled">Troubled <span class="n">1<`,
		`href="/projects?show=busy">Busy <span class="n">2<`, halted, busy, quiet)
	s.Get("/projects?show=troubled").WantText(t, halted).WantNoText(t, busy, quiet)
	s.Get("/projects?show=busy&sort=name").WantText(t, `name="show" value="busy"`, `name="sort" value="name"`, busy, halted).WantNoText(t, quiet)
	s.Get("/projects?show=troubled&q=bu").WantText(t, `value="bu"`, "No matching projects.", "Show all")
	s.Get("/projects?show=nonsense").WantText(t, halted, busy, quiet)
}

func TestARowOfProjectsHasAMenu(t *testing.T) {
	browsertest.Parallel(t)
	s := newConsoleSite(t)
	s.add("alpha", board("1_backlog", "2_current: 1_story_a", "3_done"))
	s.add("متجر", board("1_backlog", "2_current", "3_done"))
	tab := browsertest.Open(t)
	tab.Goto(s.URL + "/projects")
	press(tab, tab.Find("button", "Actions for متجر"), kb.Enter)
	for _, name := range []string{"Edit address and token", "Its agents", "Its events", "Its flow"} {
		tab.Find("link", name)
	}
	tab.Accessible()
	tab.Find("link", "Edit address and token").Click()
	tab.Wait(`decodeURI(location.pathname + location.hash) === '/projects/متجر#settings-title'`)
}

func TestATokenIsAskedForWhereTheServerWantsOne(t *testing.T) {
	browsertest.Parallel(t)
	s := newConsoleSite(t)
	s.add("alpha", nil)
	s.boards.fail(domain.WrapError(domain.BadGateway, domain.ErrTokenRefused, "refuses the token, or needs one"))
	tab := browsertest.Open(t)
	tab.Goto(s.URL + "/projects")
	if fields := tab.All("textbox", "Token"); len(fields) > 0 {
		t.Error("the form asks for a token at first")
	}
	tab.Find("textbox", "URL").Type("localhost:3001")
	tab.WaitText("answers at http://localhost:3001. It refuses the token, or needs one.")
	tab.Wait(`document.getElementById("token").checkVisibility({contentVisibilityAuto: true}) && document.getElementById("token").offsetHeight > 0`)
	s.boards.fail(nil)
	s.boards.set("", board("1_backlog: 1_story_a", "2_current:"))
	browsertest.Eval[any](tab, `document.getElementById("token").focus()`)
	tab.Keys("secret-1" + kb.Tab)
	tab.WaitText("A project server answers, with 2 stages and 1 story.")
}
