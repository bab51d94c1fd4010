package console_test

import (
	"encoding/csv"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

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
	s.wantText("at first", s.Get("/access").Text, "<h1>Access</h1>", "the way in for administrators", "No tokens have been issued", "2 agents have", ">this browser<", "admin token, since")

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
	s.wantText("later", s.Get("/access").Text, "!swk_", "&lt;dash&gt;", ">operator", time.Now().AddDate(0, 0, 30).Format("2 January 2006"))

	other := &gatewaytest.Site{TB: t, URL: s.URL, Client: gatewaytest.NewClient(t)}
	other.Submit("/login", "token", token)
	s.wantText("a session of it", s.Get("/access").Text, "by <bdi>admin</bdi>, <time", ">Logged in <", "token, since")
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
	s.wantText("the audit", s.Get("/audit").Text, "Token created", "Token revoked", "Session ended", "&lt;dash&gt;", `<ins dir="auto">operator</ins>`)
}

// TestAccessListsWhatIsForWhom: tokens, those of agents and the links of walls, which say whether they are on.
func TestAccessListsWhatIsForWhom(t *testing.T) {
	s := loggedIn(t, "")
	s.Submit("/access", "name", "ci", "role", "viewer", "expires_in", "24h")
	named := s.Submit("/access", "name", "Office, 2nd floor", "role", "wall", "expires_in", "")
	s.wantText("made", named.Text, "The link of the display", "Office, 2nd floor")
	s.wantText("without a name", s.Submit("/access", "name", "", "role", "wall", "expires_in", "").Text, "The link of the display")
	s.Get("/access").WantText(t, "Logged in now", ">1", "Tokens", "1 ends soon", "Wall displays", "0 on now", ">Tokens <", ">ci</bdi>", "signal-caution",
		"this browser", ">Wall displays <", "Office, 2nd floor", "not opened yet", "Place", "Create a token")
	link := regexp.MustCompile(`/wall\?token=[a-z0-9_]+`).FindString(named.Text)
	display := &gatewaytest.Site{TB: t, URL: s.URL, Client: gatewaytest.NewClient(t)}
	display.Get(link)
	s.Get("/access").WantText(t, "1 on now", "Office, 2nd floor", ">on now<")
}

// TestAllOtherSessionsEnd with one button, and the reader's own stays.
func TestAllOtherSessionsEnd(t *testing.T) {
	s := loggedIn(t, "")
	s.Get("/access").WantNoText(t, "End all others")
	other := &gatewaytest.Site{TB: t, URL: s.URL, Client: gatewaytest.NewClient(t)}
	for range 2 {
		other.Submit("/login", "token", gatewaytest.AdminToken)
	}
	s.Get("/access").WantText(t, "1 account", ">End all others<")
	s.follow(s.Submit("/access/sessions/end-others")).WantText(t, "2 other sessions have ended.", ">this browser<").WantNoText(t, "End all others")
	other.Get("/").WantStatus(t, http.StatusSeeOther)
	page := s.Get("/audit").WantText(t, "Ended the session of", "2 sessions").Text
	if n := strings.Count(page, "Ended the session of"); n != 1 {
		t.Errorf("%d entries of the audit", n)
	}
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
	s.wantText("first", first.Text, "Made active", `<del dir="auto">beta</del>`, `<ins dir="auto">alpha</ins>`, "admin token", ">Older<", "!<bdi>builder-1<")
	older := regexp.MustCompile(`href="(/audit\?before=\d+)"`).FindStringSubmatch(first.Text)
	if older == nil {
		t.Fatal("no older entries")
	}
	s.wantText("older", s.Get(older[1]).Text, "Joined as", "builder-1", "!>Older<")
	s.wantText("by who", s.Get("/audit?who=admin").Text, `<ins dir="auto">alpha</ins>`, "Logged in:", "!>Older<", `!<ins dir="auto">beta</ins>`)
	s.wantText("by change", s.Get("/audit?action=agent.joined").Text, "builder-1", "builder-2", "!>beta</del>")
	s.wantText("by text", s.Get("/audit?q=BUILDER-2").Text, "builder-2", "!<bdi>builder-1<")
	s.wantText("by nothing that is there", s.Get("/audit?q=100%25").Text, "No matching entries")
	for _, bad := range []string{"before=x", "from=yesterday", "tz=Nowhere"} {
		if got := s.Get("/audit?" + bad).StatusCode; got != 400 {
			t.Errorf("%s: %d", bad, got)
		}
	}
}

// TestTheAuditIsATable with the page's filters and of any length, whose cells are no formulas.
func TestTheAuditIsATable(t *testing.T) {
	s := loggedIn(t, "")
	for i := range 1100 {
		if err := s.Projects.Switch(t.Context(), []string{"beta", "alpha"}[i%2]); err != nil {
			t.Fatal(err)
		}
	}
	s.Submit("/access", "name", "=1+1", "role", "viewer").WantStatus(t, http.StatusOK)
	s.Get("/audit?who=admin").WantText(t, `<select id="who"`, `>everybody<`, `<option value="admin" selected>admin<`).
		WantText(t, `href="/audit.csv?who=admin"`)
	s.Get("/audit?who=long+gone").WantText(t, `<option value="long gone" selected>`)
	rows := func(query string) [][]string {
		t.Helper()
		got := s.Get("/audit.csv"+query).WantStatus(t, http.StatusOK)
		all, err := csv.NewReader(strings.NewReader(got.Text)).ReadAll()
		if err != nil || !strings.Contains(got.Header.Get("Content-Disposition"), "audit-") {
			t.Fatal(err, got.Header)
		}
		return all[1:]
	}
	ids := map[string]bool{}
	for _, row := range rows("?action=project.switched") {
		ids[row[0]] = true
	}
	if len(ids) < 1100 {
		t.Errorf("%d changes of 1100", len(ids))
	}
	if made := rows("?action=token.created"); len(made) != 1 || made[0][6] != "'=1+1" {
		t.Errorf("%q", made)
	}
	s.Get("/audit.csv?from=yesterday").WantStatus(t, http.StatusBadRequest)
}

// TestTheAuditHasWindowsOfTime as the events have: from is inclusive, to exclusive.
func TestTheAuditHasWindowsOfTime(t *testing.T) {
	s := loggedIn(t, "")
	s.Submit("/switch", "project", "alpha")
	page, err := s.Audit.Page(t.Context(), domain.AuditQuery{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	at, entry := page.Entries[0].At.UnixMilli(), fmt.Sprintf(`id="entry-%d"`, page.Entries[0].ID)
	for query, listed := range map[string]bool{
		fmt.Sprint("from=", at): true, fmt.Sprint("from=", at+1): false, fmt.Sprint("to=", at): false, fmt.Sprint("to=", at+1): true,
		"from=2001-01-01T00:00&to=2001-01-02T00:00&tz=Asia/Tokyo": false,
	} {
		if got := strings.Contains(s.Get("/audit?"+query).Text, entry); got != listed {
			t.Errorf("%s: the entry is listed: %v", query, got)
		}
	}
	s.wantText("the presets", s.Get("/audit").Text, ">Today</a>", ">Last night</a>", ">Since I was last here</a>", `type="datetime-local"`, "<h2>Today <span>")
}

// TestTheAuditSpeaksOfNames: a change is a sentence with the names of story and agent; ids stand in what unfolds.
func TestTheAuditSpeaksOfNames(t *testing.T) {
	s := newStorySite(t, true, map[string]string{"2_current/2_story_audit.md": "# Audit log\n"})
	version := version(t, s.Get(auditPage))
	s.Submit(auditPage, "do", "move", "stage", "3_qa", "version", version).WantStatus(t, http.StatusSeeOther)
	agent := s.join("builder-1")
	who := domain.Actor{Who: agent.ID, Via: domain.ViaAgent, AgentID: agent.ID}
	if _, _, err := s.Access.CreateToken(domain.WithActor(t.Context(), &who), domain.NamedToken{Name: "its", Role: domain.RoleViewer}, nil); err != nil {
		t.Fatal(err)
	}
	s.Get("/audit").WantText(t, "<bdi>builder-1</bdi>", "Made the token", "its", "Joined as", "Moved", `href="`+auditPage+`"`, "Audit log",
		"<bdi>webshop</bdi>", `<del dir="auto">Current</del>`, `<ins dir="auto">QA</ins>`)
	if line, _, _ := strings.Cut(s.Get("/audit?q=its").Text, "<details id=\"entry"); strings.Contains(line, "<small>id</small>") || strings.Contains(line, "<bdi>"+agent.ID) {
		t.Error("a line has ids")
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
	tab.Find("button", "Actions for ci").Click()
	tab.Find("button", "Revoke").Click()
	tab.Find("dialog", "Revoke ci?")
	browsertest.Eval[bool](tab, `document.querySelector('[popover]:popover-open .btn-danger').click(), true`)
	tab.WaitText("The token is revoked.")
	tab.Find("button", "Menu").Click()
	tab.Find("link", "Audit").Click()
	tab.WaitText("Revoked the token ci")
	tab.Find("searchbox", "Text").Type("builder-1")
	tab.Wait(`document.querySelectorAll('.audit li').length === 1`)
	tab.WaitText("Joined as builder-1")

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

// TestTheAuditGathersWhatSaysTheSame of different things: the first in full, the others behind their names, each with its own line.
func TestTheAuditGathersWhatSaysTheSame(t *testing.T) {
	s := loggedIn(t, "")
	for _, name := range []string{"ci", "dashboard", "wall"} {
		s.Submit("/access", "name", name, "role", "viewer").WantStatus(t, http.StatusOK)
	}
	s.Submit("/switch", "project", "alpha")
	page := s.Get("/audit?who=admin").Text
	_, folded, found := strings.Cut(page, `<li class="alike">`)
	if !found || strings.Count(page, `class="alike"`) != 1 {
		t.Fatal("not one run is folded")
	}
	if summary, lines, _ := strings.Cut(folded, "</summary>"); !strings.Contains(summary, "2 more like it") ||
		!strings.Contains(summary, "<bdi>dashboard</bdi>") || strings.Count(lines, "Made the token") != 2 {
		t.Errorf("behind %q: %d lines", summary, strings.Count(lines, "Made the token"))
	}
}
