package api_test

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"switchyard/handlers"
	"switchyard/internal/domain"
	"switchyard/internal/gatewaytest"
	"switchyard/internal/service"
)

// tokenSite is a gateway with an admin token, two projects that accept changes, and an agent.
type tokenSite struct {
	*gatewaytest.Site
	id, secret string
	changed    map[string]int // changes by project
}

func newTokenSite(t *testing.T) *tokenSite { return newTokenSiteWith(t, gatewaytest.AdminToken) }

// newTokenSiteWith uses an admin token, "" for a gateway without any.
func newTokenSiteWith(t *testing.T, admin domain.Secret) *tokenSite {
	client := gatewaytest.NewProjectClient(t)
	s := &tokenSite{Site: gatewaytest.NewSite(t, service.Options{Projects: client, Stories: client, Tools: client}, handlers.Gateway{AdminToken: admin}), changed: map[string]int{}}
	for _, name := range []string{"alpha", "beta"} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodGet {
				s.changed[name]++
			}
			_, _ = w.Write([]byte(`{"project":"x","story_id":"7_pay","story_name":"Pay","version":"v1","stage":"2_current","since_ms":1,"writable":true}`))
		}))
		t.Cleanup(server.Close)
		if _, err := s.Projects.Add(t.Context(), name, server.URL, nil); err != nil {
			t.Fatal(err)
		}
	}
	join, _, err := s.Agents.CreateJoinToken(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	label := "builder"
	agent, secret, err := s.Agents.Join(t.Context(), join, &label, "v1")
	if err != nil {
		t.Fatal(err)
	}
	s.id, s.secret = agent.ID, secret.Reveal()
	return s
}

func (s *tokenSite) assign(project string) {
	s.Helper()
	if _, err := s.Agents.Assign(s.Context(), s.id, project); err != nil {
		s.Fatal(err)
	}
}

// issue returns a new token of the agent's command.
func (s *tokenSite) issue(project string) string {
	s.Helper()
	got := s.Send("POST", "/gateway/agents/"+s.id+"/token", "", "Authorization", "Bearer "+s.secret)
	var answer struct{ Token, Project string }
	got.Decode(s.TB.(*testing.T), &answer)
	if got.StatusCode != 201 || !strings.HasPrefix(answer.Token, "swk_") || answer.Project != project || got.Header.Get("Cache-Control") != "no-store" {
		s.Fatalf("%d %s", got.StatusCode, got.Text)
	}
	return answer.Token
}

// lives reports whether a token is valid.
func (s *tokenSite) lives(token string) bool {
	return s.Send("GET", "/gateway/mode", "", "Authorization", "Bearer "+token).StatusCode == 200
}

func TestTheTokenOfAnAgentsCommandEndsWithItsAssignment(t *testing.T) {
	for what, end := range map[string]func(*tokenSite){
		"unassigned":         func(s *tokenSite) { s.assign("") },
		"assigned elsewhere": func(s *tokenSite) { s.assign("beta") },
		"and back":           func(s *tokenSite) { s.assign("beta"); s.assign("alpha") },
		"another token":      func(s *tokenSite) { s.issue("alpha") },
		"agent removed":      func(s *tokenSite) { _ = s.Agents.Remove(t.Context(), s.id) },
		"project removed":    func(s *tokenSite) { _, _ = s.Projects.Remove(t.Context(), "alpha") },
		"project restored": func(s *tokenSite) {
			removed, _ := s.Projects.Remove(t.Context(), "alpha")
			_, _ = s.Projects.Restore(t.Context(), removed)
		},
	} {
		s := newTokenSite(t)
		s.assign("alpha")
		token := s.issue("alpha")
		if s.assign("alpha"); !s.lives(token) {
			t.Errorf("%s: it ended before", what)
		}
		session, err := s.Access.BeginSession(t.Context(), domain.Actor{Who: "builder", Via: domain.ViaToken, Role: domain.RoleOperator}, s.Access.Tokens()[0].ID, "")
		if err != nil {
			t.Fatal(err)
		}
		if end(s); s.lives(token) {
			t.Errorf("%s: it is still good", what)
		}
		if s.Access.Session(t.Context(), session.ID) != nil {
			t.Errorf("%s: a session that was made with it is still good", what)
		}
		later := gatewaytest.New(t, service.Options{Store: s.Store}, handlers.Gateway{AdminToken: gatewaytest.AdminToken})
		if later.Access.Token(t.Context(), domain.Secret(token)) != nil {
			t.Errorf("%s: it is good again after a restart", what)
		}
		if later.Access.Session(t.Context(), session.ID) != nil {
			t.Errorf("%s: its session is good again after a restart", what)
		}
	}
}

func TestTheTokenOfAnAgentsCommandOutlivesARestart(t *testing.T) {
	s := newTokenSite(t)
	s.assign("alpha")
	token := s.issue("alpha")
	later := gatewaytest.New(t, service.Options{Store: s.Store}, handlers.Gateway{AdminToken: gatewaytest.AdminToken})
	identity := later.Access.Token(t.Context(), domain.Secret(token))
	if identity == nil || identity.Who != "agent builder" || identity.Role != domain.RoleViewer || identity.AgentID != s.id || identity.Project != "alpha" {
		t.Errorf("%+v", identity)
	}
	hash := sha256.Sum256([]byte(token))
	if stored := later.Access.Tokens()[0]; stored.Hash != hex.EncodeToString(hash[:]) {
		t.Errorf("stored: %+v", stored)
	}
}

func TestTheTokenOfAnAgentsCommandChangesItsProjectOnly(t *testing.T) {
	s := newTokenSite(t)
	s.assign("alpha")
	bearer := []string{"Authorization", "Bearer " + s.issue("alpha"), "Accept", "application/json, text/event-stream"}
	tool := func(name, arguments string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + name + `","arguments":` + arguments + `}}`
	}
	for _, c := range []struct {
		method, path, body string
		status             int
		part               string
	}{
		{"GET", "/api/gateway", "", 200, "beta"}, // it reads everything
		{"GET", "/api/gateway/projects/beta/stories/7_pay", "", 200, ""},
		{"PATCH", "/api/gateway/projects/alpha/stories/7_pay", `{"version":"v1","stage":"3_qa"}`, 200, ""},
		{"PATCH", "/api/gateway/projects/beta/stories/7_pay", `{"version":"v1","stage":"3_qa"}`, 403, "project 'alpha' only"},
		{"POST", "/api/gateway/projects/beta/stories", `{"name":"x"}`, 403, "project 'alpha' only"},
		{"POST", "/api/gateway/switch", `{"project":"alpha"}`, 403, "role operator"},
		{"POST", "/gateway/agents/" + s.id + "/assign", `{"project":"beta"}`, 403, "role operator"},
		{"POST", "/gateway/tokens", "", 403, "role operator"},
		{"POST", "/api/gateway/attention/acknowledge", `{"key":"blocked/alpha/7_pay"}`, 403, "role operator"},
		{"POST", "/api/gateway/projects", `{"name":"x","url":"http://x"}`, 403, "role admin"},
		{"GET", "/api/gateway/bot-config", "", 403, "role admin"},
		{"POST", "/mcp", tool("update_story", `{"project":"alpha","story_id":"7_pay","blocked":"which currency?"}`), 200, `\"version\"`},
		{"POST", "/mcp", tool("update_story", `{"project":"beta","story_id":"7_pay","blocked":"x"}`), 200, "project 'alpha' only"},
		{"POST", "/mcp", tool("switch_project", `{"project":"beta"}`), 200, "role operator"},
		{"POST", "/mcp", tool("assign_agent", `{"agent_id":"`+s.id+`","project":"beta"}`), 200, "role operator"},
		{"POST", "/mcp", tool("call_project_tool", `{"project":"beta","tool":"x","arguments":{}}`), 200, "project 'alpha' only"},
	} {
		got := s.Send(c.method, c.path, c.body, bearer...)
		if got.StatusCode != c.status || !strings.Contains(got.Text, c.part) {
			t.Errorf("%s %s %s: %d %s, want %d %s", c.method, c.path, c.body, got.StatusCode, got.Text, c.status, c.part)
		}
	}
	if s.changed["alpha"] != 2 || s.changed["beta"] != 0 {
		t.Errorf("changes: %v", s.changed)
	}
}

// TestAnAgentsTokenCountsOnAnOpenGateway: where callers need no token, that of an agent still says who asks, and any other is
// ignored.
func TestAnAgentsTokenCountsOnAnOpenGateway(t *testing.T) {
	s := newTokenSiteWith(t, "")
	s.assign("alpha")
	token, change := s.issue("alpha"), `{"version":"v1","stage":"3_qa"}`
	_, named := gatewaytest.NamedToken(t, s.Service, "dashboard", domain.RoleViewer)
	alpha, beta := "/api/gateway/projects/alpha/stories/7_pay", "/api/gateway/projects/beta/stories/7_pay"
	for _, c := range []struct {
		token, path string
		status      int
	}{{token, alpha, 200}, {token, beta, 403}, {"swk_unknown", beta, 200}, {"anything", beta, 200}, {named, beta, 200}} {
		got := s.Send("PATCH", c.path, change, "Authorization", "Bearer "+c.token)
		if got.StatusCode != c.status {
			t.Errorf("%s %s: %d %s", c.token, c.path, got.StatusCode, got.Text)
		}
	}
	page, err := s.Audit.Page(t.Context(), domain.AuditQuery{Limit: 4, Action: domain.StoryChanged})
	if err != nil || len(page.Entries) != 4 || page.Entries[3].Who != "agent builder" || page.Entries[0].Who != "admin" {
		t.Errorf("%+v, %v", page.Entries, err)
	}
	s.assign("")
	if got := s.Send("PATCH", beta, change, "Authorization", "Bearer "+token); got.StatusCode != 200 {
		t.Errorf("the ended token counts: %d %s", got.StatusCode, got.Text)
	}
}

func TestOnlyTheAgentItselfGetsTheTokenOfItsCommand(t *testing.T) {
	s := newTokenSite(t)
	address := "/gateway/agents/" + s.id + "/token"
	if got := s.Send("POST", address, "", "Authorization", "Bearer "+s.secret); got.StatusCode != 409 || got.Text != "the agent is assigned to no project" {
		t.Errorf("unassigned: %d %s", got.StatusCode, got.Text)
	}
	s.assign("alpha")
	token := s.issue("alpha")
	for who, bearer := range map[string]string{"the administrator": gatewaytest.AdminToken, "the command": token, "nobody": "", "somebody": "sws_x"} {
		if got := s.Send("POST", address, "", "Authorization", "Bearer "+bearer); got.StatusCode != 401 {
			t.Errorf("%s: %d %s", who, got.StatusCode, got.Text)
		}
	}
	if !s.lives(token) {
		t.Error("a refusal has ended the token")
	}
	for _, path := range []string{"/gateway/agents", "/api/gateway/tokens", "/api/gateway/audit", "/metrics", "/agents"} {
		if got := s.Send("GET", path, "", "Authorization", "Bearer "+gatewaytest.AdminToken); strings.Contains(got.Text, token) {
			t.Errorf("%s shows the token", path)
		}
	}
}
