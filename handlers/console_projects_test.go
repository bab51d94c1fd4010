package handlers_test

import (
	"html"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"switchyard/internal/domain"
)

// follow follows the redirect in a form's answer.
func (s *consoleSite) follow(a answer) answer {
	s.Helper()
	a.wantStatus(s, http.StatusSeeOther)
	return s.get(a.Header.Get("Location")).wantStatus(s, http.StatusOK)
}

func TestAddingAProject(t *testing.T) {
	s := newConsoleSite(t)
	added := s.submit("/projects", "name", "  alpha ", "url", " http://127.0.0.1:3001 ", "token", "secret-1")
	s.follow(added).wantText(t, "alpha is added.", "alpha", "http://127.0.0.1:3001")
	s.get("/projects").wantNoText(t, "is added", "secret-1")
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
		a := s.submit("/projects", "name", test.name, "url", test.url, "token", "secret-1").wantStatus(t, test.status)
		a.wantText(t, `value="`+test.name+`"`, `value="`+test.url+`"`)
		a.wantText(t, `aria-invalid="true"`, `id="`+test.field+`-error"`, test.message)
		a.wantNoText(t, "secret-1")
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
	s.follow(s.submit("/switch", "project", "alpha", "next", "/projects")).wantText(t, "alpha is the active project.")
	page := s.follow(s.submit("/switch", "project", "beta", "next", "/projects")).wantText(t, "beta is the active project.", "Undo")
	if s.Projects.Registry().Active != "beta" {
		t.Errorf("active is %q", s.Projects.Registry().Active)
	}
	s.follow(s.submitUndo(page))
	if s.Projects.Registry().Active != "alpha" {
		t.Errorf("active is %q", s.Projects.Registry().Active)
	}
	s.submit("/switch", "project", "none").wantStatus(t, http.StatusNotFound).wantText(t, "Not found</h1>")
}

// submitUndo sends the Undo form in the page's notice.
func (s *consoleSite) submitUndo(page answer) answer {
	s.Helper()
	_, notice, _ := strings.Cut(page.body, `id="notice"`)
	notice, _, _ = strings.Cut(notice, "</form>")
	action := regexp.MustCompile(`action="([^"]*)"`).FindStringSubmatch(notice)
	var fields []string
	for _, field := range regexp.MustCompile(`name="([^"]*)" value="([^"]*)"`).FindAllStringSubmatch(notice, -1) {
		fields = append(fields, field[1], html.UnescapeString(field[2]))
	}
	if action == nil || len(fields) == 0 {
		s.Fatalf("no undo on the page\n%s", page.body)
	}
	return s.submit(action[1], fields...)
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
	s.get("/projects").wantText(t, `action="/projects/a%2Fb%20c/remove"`)
	page := s.follow(s.submit("/projects/a%2Fb%20c/remove")).wantText(t, "a/b c is removed.", "Undo")
	if r := s.Projects.Registry(); len(r.Projects) != 0 || r.Active != "" {
		t.Errorf("left: %v", r)
	}
	page.wantNoText(t, "secret-1")
	s.follow(s.submitUndo(page)).wantText(t, "a/b c is back. An agent is assigned to it again.")
	if a, _ := s.Agents.Find(agent.ID); a.Project != name {
		t.Error("its agent has not come back")
	}
	project, _ := s.Projects.Registry().Find("a/b c")
	if project.Token != token || s.Projects.Registry().Active != "a/b c" {
		t.Errorf("%v, active %q", project.Token.Reveal(), s.Projects.Registry().Active)
	}
	s.submitUndo(page).wantStatus(t, http.StatusNotFound).wantText(t, "can no longer be undone")
	s.submit("/projects/none/remove").wantStatus(t, http.StatusNotFound)
}

func TestChangingAProject(t *testing.T) {
	s := newConsoleSite(t)
	s.add("alpha", nil)
	token := func() string {
		project, _ := s.Projects.Registry().Find("alpha")
		return project.Token.Reveal()
	}
	s.follow(s.submit("/projects/alpha", "url", "http://127.0.0.1:4001", "token", "secret-1")).
		wantText(t, "The settings are saved.", `value="http://127.0.0.1:4001"`, "One is stored and never shown.")
	if token() != "secret-1" {
		t.Errorf("token %q", token())
	}
	s.follow(s.submit("/projects/alpha", "url", "http://127.0.0.1:4001/board", "token", ""))
	if token() != "secret-1" {
		t.Errorf("an empty field changed the token to %q", token())
	}
	s.follow(s.submit("/projects/alpha", "url", "http://127.0.0.1:4002", "forget_token", "yes"))
	if token() != "" {
		t.Errorf("token %q", token())
	}
	s.submit("/projects/alpha", "url", "nonsense").wantStatus(t, http.StatusBadRequest).
		wantText(t, `value="nonsense"`, "Must begin with http:// or https://.")
	s.submit("/projects/none", "url", "http://127.0.0.1:4002").wantStatus(t, http.StatusNotFound)
}

func TestOversizedAndForeignForms(t *testing.T) {
	s := newConsoleSite(t)
	s.submit("/projects", "name", strings.Repeat("x", 1<<20)).wantStatus(t, http.StatusRequestEntityTooLarge)
	s.do(http.MethodPost, "/projects", strings.NewReader("name=%zz"), "Content-Type", "application/x-www-form-urlencoded").wantStatus(t, http.StatusBadRequest)
	s.do(http.MethodPost, "/projects", strings.NewReader("name=x&url=http://x"), "Content-Type", "application/x-www-form-urlencoded",
		"Sec-Fetch-Site", "cross-site").wantStatus(t, http.StatusForbidden)
	if n := len(s.Projects.Registry().Projects); n != 0 {
		t.Errorf("%d projects", n)
	}
}

func TestAddingAProjectSaysWhatAnswersThere(t *testing.T) {
	s := newConsoleSite(t)
	s.submit("/check-address", "url", "").wantStatus(t, http.StatusOK).wantNoText(t, "answers")
	s.submit("/check-address", "url", "nonsense").wantText(t, "Must begin with http:// or https://.")
	s.submit("/check-address", "url", "localhost:3001").wantText(t, "signal-caution", "No project server answers at http://localhost:3001. Connection refused.")

	s.boards.set("", board("1_backlog: 1_story_a, 2_story_b", "2_current:"))
	s.submit("/check-address", "url", "localhost:3001").wantText(t, "signal-clear", "A project server answers, with 2 stages and 2 stories.")
	page := s.follow(s.submit("/projects", "name", "alpha", "url", "localhost:3001"))
	page.wantText(t, "alpha is added. It is the active project. A project server answers, with 2 stages and 2 stories.", "http://localhost:3001")
	if active := s.Projects.Registry().Active; active != "alpha" {
		t.Errorf("active: %q", active)
	}

	s.boards.remove("")
	page = s.follow(s.submit("/projects", "name", "beta", "url", "localhost:3002"))
	page.wantText(t, "signal-caution", "beta is added. No project server answers at http://localhost:3002. Connection refused.", `action="/projects/beta/remove"`, "Remove it again")
	if active := s.Projects.Registry().Active; active != "alpha" {
		t.Errorf("active: %q", active)
	}
}
