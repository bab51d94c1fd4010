package mcp_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"switchyard/internal/domain"
	"switchyard/internal/gatewaytest"
	"switchyard/internal/service"
	"switchyard/internal/waittest"
)

// withToken sends a token with each request.
type withToken string

func (t withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(t))
	return http.DefaultTransport.RoundTrip(r)
}

// callWith calls a tool with a token.
func callWith(s *gatewaytest.Site, token, tool, arguments string) (text string, isError bool) {
	s.Helper()
	session := connectMCP(s, s.URL, newestMCP, &http.Client{Transport: withToken(token)})
	result, err := session.CallTool(s.Context(), &sdk.CallToolParams{Name: tool, Arguments: json.RawMessage(arguments)})
	if err != nil {
		s.Fatal(err)
	}
	return result.Content[0].(*sdk.TextContent).Text, result.IsError
}

// TestWhatATokenMayDoByMCP: a viewer reads, an operator changes, and the audit log has the token's name.
func TestWhatATokenMayDoByMCP(t *testing.T) {
	s := gatewaytest.NewWholeSite(t, service.Options{}, gatewaytest.AdminToken)
	s.Add("alpha", "http://127.0.0.1:1")
	s.Add("beta", "http://127.0.0.1:1")
	_, viewer := gatewaytest.NamedToken(t, s.Service, "guest", domain.RoleViewer)
	_, operator := gatewaytest.NamedToken(t, s.Service, "coder", domain.RoleOperator)
	type entry struct {
		ID               int64
		Who, Via, Action string
		RequestID        string `json:"request_id"`
	}
	last := func() entry {
		var audit struct{ Entries []entry }
		s.Send("GET", "/api/gateway/audit?limit=1", "", "Authorization", "Bearer "+gatewaytest.AdminToken).Decode(t, &audit)
		return append(audit.Entries, entry{})[0]
	}
	waittest.Until(t, "alpha is known to be unreachable", func() bool {
		text, _ := callWith(s, viewer, "overview", "{}")
		return strings.Contains(text, "unreachable/alpha")
	})
	before := last()
	text, isError := callWith(s, viewer, "switch_project", `{"project":"alpha"}`)
	if !isError || !strings.Contains(text, "needs the role operator, and your token has the role viewer") || last().ID != before.ID {
		t.Errorf("a viewer switches: %s", text)
	}
	if text, isError := callWith(s, operator, "switch_project", `{"project":"alpha"}`); isError {
		t.Errorf("an operator switches: %s", text)
	}
	if e := last(); e.Who != "coder" || e.Via != "token" || e.Action != "project.switched" || e.RequestID == "" {
		t.Errorf("the audit: %+v", e)
	}
	if text, isError := callWith(s, operator, "acknowledge", `{"key":"unreachable/alpha"}`); isError {
		t.Errorf("an operator acknowledges: %s", text)
	}
	if text, _ := callWith(s, viewer, "overview", "{}"); !strings.Contains(text, `"acknowledged_by":"coder"`) {
		t.Errorf("who acknowledged it is not said: %s", text)
	}

	made, secret, err := s.Access.CreateToken(t.Context(), domain.NamedToken{Name: "builder", Role: domain.RoleOperator, Project: "beta"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	before = last()
	for tool, arguments := range map[string]string{
		"switch_project": `{"project":"beta"}`, "acknowledge": `{"key":"unreachable/alpha"}`,
	} {
		if text, isError := callWith(s, secret.Reveal(), tool, arguments); !isError || !strings.Contains(text, "may change project 'beta' only") {
			t.Errorf("a token for another project, %s: %s", tool, text)
		}
	}
	if text, isError := callWith(s, secret.Reveal(), "acknowledge", `{"key":"unreachable/beta"}`); isError {
		t.Errorf("a token for its project: %s", text)
	}
	if e := last(); e.Who != made.Name || e.ID != before.ID+1 {
		t.Errorf("the audit: %+v", e)
	}
}

// TestAnAgentsFirstCallIsAboutItsProject, although the gateway makes its tools only then.
func TestAnAgentsFirstCallIsAboutItsProject(t *testing.T) {
	s := gatewaytest.NewWholeSite(t, service.Options{}, gatewaytest.AdminToken)
	for _, project := range []string{"alpha", "beta"} {
		s.Add(project, "http://127.0.0.1:1")
		s.Record(project, `{"type":"story_blocked","story_id":"7_`+project+`","timestamp_ms":1,"reason":"none"}`)
	}
	join, _, err := s.Agents.CreateJoinToken(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	agent, secret, err := s.Agents.Join(t.Context(), join, nil, "v1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Agents.Assign(t.Context(), agent.ID, "beta"); err != nil {
		t.Fatal(err)
	}
	var issued struct{ Token string }
	s.Send("POST", "/gateway/agents/"+agent.ID+"/token", "", "Authorization", "Bearer "+secret.Reveal()).Decode(t, &issued)
	got := s.Send("POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait_for_events","arguments":{"after":0,"wait":"30s"}}}`,
		"Authorization", "Bearer "+issued.Token, "Accept", "application/json, text/event-stream")
	if !strings.Contains(got.Text, "7_beta") || strings.Contains(got.Text, "7_alpha") {
		t.Errorf("the agent of beta gets %s", got.Text)
	}
}
