package console_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"switchyard/internal/browsertest"
	"switchyard/internal/domain"
	"switchyard/internal/gatewaytest"
)

var namedTokenPattern = regexp.MustCompile(`swk_[a-z2-7]{32}`)

// loggedIn is a whole site whose reader has logged in with a token.
func loggedIn(t *testing.T, token string) *consoleSite {
	t.Helper()
	s := newWholeSite(t)
	if token == "" {
		token = gatewaytest.AdminToken
	}
	if a := s.Submit("/login", "token", token); a.StatusCode != http.StatusSeeOther {
		t.Fatalf("login: %d", a.StatusCode)
	}
	return s
}

// TestAccessPageWithoutScripts: every action is a plain form.
func TestAccessPageWithoutScripts(t *testing.T) {
	s := loggedIn(t, "")
	s.wantText("at first", s.Get("/access").Text, "<h1>Access</h1>", "No tokens have been issued", "admin token", ">you<", "2 agents have")

	for _, c := range []struct{ name, role, expires, says string }{
		{" ", "viewer", "", "Must not be empty"},
		{"a", "root", "", "Must be viewer, operator, admin or wall"},
		{"a", "viewer", "1ms", "Must be a duration"},
	} {
		refused := s.Submit("/access", "name", c.name, "role", c.role, "expires_in", c.expires)
		if refused.StatusCode != 400 {
			t.Errorf("%+v: %d", c, refused.StatusCode)
		}
		s.wantText("refused", refused.Text, c.says, `aria-invalid="true"`, `value="`+c.name+`"`, "!swk_")
	}
	made := s.Submit("/access", "name", "<dash>", "role", "operator", "expires_in", "720h")
	token := namedTokenPattern.FindString(made.Text)
	if made.StatusCode != 200 || made.Header.Get("Cache-Control") != "no-store" || token == "" {
		t.Fatalf("made: %d %v %s", made.StatusCode, made.Header, made.Text)
	}
	s.wantText("made", made.Text, "shown only once", "&lt;dash&gt;", "!<dash>")
	s.wantText("later", s.Get("/access").Text, "!swk_", "&lt;dash&gt;", "operator", "in <time")

	other := &gatewaytest.Site{TB: t, URL: s.URL, Client: gatewaytest.NewClient(t)}
	other.Submit("/login", "token", token)
	s.wantText("a session of it", s.Get("/access").Text, "Logged in by", ">token<")
	session := s.Access.Sessions()[0]
	s.wantText("ended", s.follow(s.Submit("/access/sessions/"+session.ID+"/end")).Text, "The session has ended.")
	if got := other.Get("/").StatusCode; got != http.StatusSeeOther {
		t.Errorf("the ended session: %d", got)
	}
	s.wantText("ended twice", s.follow(s.Submit("/access/sessions/"+session.ID+"/end")).Text, "had already ended")
	other.Submit("/login", "token", token)
	id := s.Access.Tokens()[0].ID
	s.wantText("revoked", s.follow(s.Submit("/access/tokens/"+id+"/revoke")).Text, "The token is revoked.", "No tokens have been issued")
	if got := other.Get("/").StatusCode; got != http.StatusSeeOther {
		t.Errorf("a session of the revoked token: %d", got)
	}
	s.wantText("the audit", s.Get("/audit").Text, "Token created", "Token revoked", "Session ended", "&lt;dash&gt;", "role: operator")
}

func TestAccessPageWhereNothingIsSetUp(t *testing.T) {
	s := newConsoleSite(t)
	s.wantText("open", s.Get("/access").Text, "everyone who can reach this gateway is an administrator")
}

func TestAuditPageIsFilteredAndPaged(t *testing.T) {
	s := loggedIn(t, "")
	for range 60 {
		if err := s.Projects.Switch(t.Context(), "beta"); err != nil {
			t.Fatal(err)
		}
	}
	s.Submit("/switch", "project", "alpha")
	first := s.Get("/audit")
	s.wantText("first", first.Text, "Project switched", "beta → alpha", "admin token", ">Older<", "!builder-1")
	older := regexp.MustCompile(`href="(/audit\?before=\d+)"`).FindStringSubmatch(first.Text)
	if older == nil {
		t.Fatal("no older entries")
	}
	s.wantText("older", s.Get(older[1]).Text, "Agent joined", "builder-1", "!>Older<")
	s.wantText("by who", s.Get("/audit?who=admin").Text, "beta → alpha", "Session began", "!>Older<", "!beta → beta")
	s.wantText("by change", s.Get("/audit?action=agent.joined").Text, "builder-1", "builder-2", "!beta →")
	s.wantText("by text", s.Get("/audit?q=BUILDER-2").Text, "builder-2", "!builder-1")
	s.wantText("by nothing that is there", s.Get("/audit?q=100%25").Text, "No matching entries")
	if got := s.Get("/audit?before=x").StatusCode; got != 400 {
		t.Errorf("a bad position: %d", got)
	}
}

// TestAccessHasRoomForLongNamesOnAPhone, as browsers break no word of their own accord.
func TestAccessHasRoomForLongNamesOnAPhone(t *testing.T) {
	browsertest.Parallel(t)
	s := newWholeSite(t)
	gatewaytest.NamedToken(t, s.Service, strings.Repeat("x", 100), domain.RoleViewer)
	tab := loggedInTab(t, s)
	tab.Phone()
	tab.Goto(s.URL + "/access")
	if wide := browsertest.Eval[int](tab, "document.documentElement.scrollWidth"); wide > 360 {
		t.Errorf("the page is %d px wide", wide)
	}
}

func TestBrowserAccessAndAudit(t *testing.T) {
	browsertest.Parallel(t)
	s := newWholeSite(t)
	tab := browsertest.Open(t)
	tab.Goto(s.URL + "/login")
	tab.Find("textbox", "Token").Type(gatewaytest.AdminToken)
	tab.Find("button", "Log in").Click()
	tab.Find("heading", "Overview")
	tab.Find("button", "Menu").Click()
	tab.Find("link", "Access").Click()
	tab.Find("textbox", "Name").Type("ci")
	tab.Find("button", "Create token").Click()
	tab.WaitText("Copy it now")
	token := browsertest.Eval[string](tab, `document.getElementById('token-text').textContent`)
	if !namedTokenPattern.MatchString(token) {
		t.Errorf("the token is %q", token)
	}
	tab.Find("button", "Copy").Click()
	tab.WaitText("Copied")
	tab.Find("button", "Revoke").Click()
	tab.Find("dialog", "Revoke ci?")
	browsertest.Eval[bool](tab, `document.querySelector('[popover]:popover-open .btn-danger').click(), true`)
	tab.WaitText("The token is revoked.")
	tab.Find("button", "Menu").Click()
	tab.Find("link", "Audit").Click()
	tab.WaitText("Token revoked")
	tab.Find("searchbox", "Text").Type("builder-1")
	tab.Wait(`document.querySelectorAll('tbody tr').length === 1`)
	tab.WaitText("Agent joined")

	// A viewer gets none of these controls.
	_, viewer := gatewaytest.NamedToken(t, s.Service, "guest", domain.RoleViewer)
	tab.Find("button", "Menu").Click()
	tab.Find("button", "Log out").Click()
	tab.Find("textbox", "Token").Type(viewer)
	tab.Find("button", "Log in").Click()
	tab.Find("heading", "Overview")
	tab.Goto(s.URL + "/agents")
	tab.Find("heading", "Agents")
	for _, name := range []string{"Add agent", "Assign", "Remove", "Rename", "Switch", "Make active", "Sign in"} {
		if len(tab.All("button", name)) > 0 {
			t.Errorf("a viewer is offered %s", name)
		}
	}
	tab.Goto(s.URL + "/audit")
	tab.WaitText("This needs the role admin; yours is viewer.")
	if text := browsertest.Eval[string](tab, "document.body.innerText"); strings.Contains(text, "builder") {
		t.Error("a viewer sees the audit")
	}
	tab.Accessible()
	tab.Complaints() // of the status 403
}
