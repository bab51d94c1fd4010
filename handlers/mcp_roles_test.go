package handlers_test

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

// callWith calls a tool with a token, over a socket.
func (a *audited) callWith(token, tool, arguments string) (text string, isError bool) {
	a.Helper()
	session := connectMCP(a.TB.(*testing.T), a.URL, newestMCP, &http.Client{Transport: withToken(token)})
	result, err := session.CallTool(a.Context(), &sdk.CallToolParams{Name: tool, Arguments: json.RawMessage(arguments)})
	if err != nil {
		a.Fatal(err)
	}
	return result.Content[0].(*sdk.TextContent).Text, result.IsError
}

// TestWhatATokenMayDoByMCP: a viewer reads, an operator changes, and the audit log has the token's name.
func TestWhatATokenMayDoByMCP(t *testing.T) {
	a := newAudited(t)
	a.Add("alpha", "http://127.0.0.1:1")
	a.Add("beta", "http://127.0.0.1:1")
	_, operator := gatewaytest.NamedToken(t, a.Service, "coder", domain.RoleOperator)
	waittest.Until(t, "alpha is known to be unreachable", func() bool {
		text, _ := a.callWith(a.viewer, "overview", "{}")
		return strings.Contains(text, "unreachable/alpha")
	})
	before := a.last()
	text, isError := a.callWith(a.viewer, "switch_project", `{"project":"alpha"}`)
	if !isError || !strings.Contains(text, "needs the role operator, and your token has the role viewer") || a.last().ID != before.ID {
		t.Errorf("a viewer switches: %s", text)
	}
	if text, isError := a.callWith(operator, "switch_project", `{"project":"alpha"}`); isError {
		t.Errorf("an operator switches: %s", text)
	}
	if e := a.last(); e.Who != "coder" || e.Via != "token" || e.Action != "project.switched" || value(e.RequestID) == "" {
		t.Errorf("the audit: %+v", e)
	}
	if text, isError := a.callWith(operator, "acknowledge", `{"key":"unreachable/alpha"}`); isError {
		t.Errorf("an operator acknowledges: %s", text)
	}
	if text, _ := a.callWith(a.viewer, "overview", "{}"); !strings.Contains(text, `"acknowledged_by":"coder"`) {
		t.Errorf("who acknowledged it is not said: %s", text)
	}

	made, secret, err := a.Access.CreateToken(t.Context(), service.NewToken{Name: "builder", Role: domain.RoleOperator, Project: "beta"})
	if err != nil {
		t.Fatal(err)
	}
	before = a.last()
	for tool, arguments := range map[string]string{
		"switch_project": `{"project":"beta"}`, "acknowledge": `{"key":"unreachable/alpha"}`,
	} {
		if text, isError := a.callWith(secret.Reveal(), tool, arguments); !isError || !strings.Contains(text, "may change project 'beta' only") {
			t.Errorf("a token for another project, %s: %s", tool, text)
		}
	}
	if text, isError := a.callWith(secret.Reveal(), "acknowledge", `{"key":"unreachable/beta"}`); isError {
		t.Errorf("a token for its project: %s", text)
	}
	if e := a.last(); e.Who != made.Name || e.ID != before.ID+1 {
		t.Errorf("the audit: %+v", e)
	}
}
