package handlers_test

import (
	"net/http"
	"strings"
	"testing"

	"switchyard/internal/domain"
	"switchyard/internal/gatewaytest"
)

// TestLoginsOfAMinuteAreOneEntry, and one line of the log; an account has fifty sessions, and nobody is refused.
func TestLoginsOfAMinuteAreOneEntry(t *testing.T) {
	g := newGuarded(t, gatewaytest.AdminToken, "key")
	var first, last string
	for i := range 120 {
		cookie := g.session(t)
		if last = cookie; i == 0 {
			first = cookie
		}
		if i%10 == 0 {
			other := g.session(t)
			if g.send(here, "POST", "/logout", "", "Cookie", other).StatusCode != http.StatusSeeOther {
				t.Fatal("logging out failed")
			}
		}
	}
	if n := len(g.service.Access.Sessions()); n != 50 {
		t.Errorf("%d sessions, want 50", n)
	}
	for cookie, want := range map[string]int{first: http.StatusUnauthorized, last: http.StatusOK} {
		if got := g.send(here, "GET", "/api/gateway", "", "Cookie", cookie).StatusCode; got != want {
			t.Errorf("a session is answered %d, want %d", got, want)
		}
	}
	page, err := g.service.Audit.Page(t.Context(), domain.AuditQuery{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	details := map[domain.Action][]string{}
	for _, e := range page.Entries {
		details[e.Action] = append(details[e.Action], e.Detail)
	}
	began, ended := details[domain.SessionBegan], details[domain.SessionEnded]
	if len(began) != 1 || !strings.Contains(began[0], "132 times within a minute") || len(ended) != 1 || !strings.Contains(ended[0], "12 times") {
		t.Errorf("the entries are %q and %q", began, ended)
	}
	if n := g.log.Count("action=session.began"); n != 1 {
		t.Errorf("%d lines of the log", n)
	}
}

// TestAnAccountIsAnIDNotAName: an agent that is called like an administrator's token logs in until sessions end.
func TestAnAccountIsAnIDNotAName(t *testing.T) {
	g := newGuarded(t, gatewaytest.AdminToken, "key")
	_, zoe := gatewaytest.NamedToken(t, g.service, "zoe", domain.RoleAdmin)
	login := g.logIn(here, zoe, "")
	cookie := login.Cookies()[0].Name + "=" + login.Cookies()[0].Value
	join, _, err := g.service.Agents.CreateJoinToken(t.Context(), "hidden-project")
	if err != nil {
		t.Fatal(err)
	}
	label := "zoe"
	agent, _, err := g.service.Agents.Join(t.Context(), join, &label, "")
	if err != nil {
		t.Fatal(err)
	}
	_, token, err := g.service.Agents.IssueToken(t.Context(), agent.ID)
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if answer := g.logIn(here, token.Reveal(), ""); answer.StatusCode != http.StatusSeeOther {
			t.Fatalf("a login is answered %d", answer.StatusCode)
		}
	}
	if got := g.send(here, "GET", "/api/gateway/audit", "", "Cookie", cookie).StatusCode; got != http.StatusOK {
		t.Errorf("the administrator's session is answered %d", got)
	}
	page, err := g.service.Audit.Page(t.Context(), domain.AuditQuery{Limit: 1})
	if err != nil || page.Entries[0].Who != "agent zoe" || !strings.Contains(page.Entries[0].Detail, "100 times") {
		t.Errorf("the newest entry is %+v, %v", page.Entries, err)
	}
	identity := g.service.Access.Token(t.Context(), token)
	if identity == nil || identity.Account != "agent "+agent.ID {
		t.Errorf("the identity is %+v", identity)
	}
}
