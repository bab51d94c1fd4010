package mcp_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"switchyard/handlers"
	"switchyard/handlers/mcp"
	"switchyard/internal/domain"
	"switchyard/internal/gatewaytest"
	"switchyard/internal/service"
	"switchyard/internal/web"
)

// TestEveryRoleSeesTheListAndMayDoItsPart: a call that a role does not allow has an error result that says so.
func TestEveryRoleSeesTheListAndMayDoItsPart(t *testing.T) {
	server := mcp.New(gatewaytest.New(t, service.Options{}, handlers.Gateway{}).Service, slog.New(slog.DiscardHandler), "1", &web.HeldCalls{})
	serve := web.Errors{}.Handler(web.Plain, server.Serve)
	documented := documentedTools(t)
	changes := map[string]string{
		"switch_project": `{"project":"a"}`, "assign_agent": `{"agent_id":"a","project":null}`, "update_story": `{"project":"a","story_id":"b"}`,
		"acknowledge": `{"key":"a"}`, "ask": `{"prompt":""}`, "permission": `{"tool_name":"","input":{}}`, "claim_story": `{"project":"a"}`, "release_story": `{"project":"a","story_id":"b"}`, "call_project_tool": `{"tool":"a","arguments":{}}`,
	}
	for role, mayChange := range map[domain.Role]bool{domain.RoleViewer: false, domain.RoleOperator: true, domain.RoleAdmin: true} {
		http := httptest.NewServer(web.WithRequestInfo(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			web.InfoOf(r.Context()).Role = role
			serve(w, r)
		})))
		defer http.Close()
		client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
		session, err := client.Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: http.URL}, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer session.Close()
		tools, err := session.ListTools(t.Context(), nil)
		if err != nil || len(tools.Tools) != len(documented) {
			t.Errorf("%s: %d tools, documented are %d, %v", role, len(tools.Tools), len(documented), err)
		}
		for _, tool := range tools.Tools {
			if !slices.Contains(documented, tool.Name) {
				t.Errorf("docs/mcp.md does not name %s", tool.Name)
			}
			arguments, changes := changes[tool.Name]
			if tool.Annotations.ReadOnlyHint == changes {
				t.Errorf("%s is read-only: %v", tool.Name, !changes)
			}
			// What may destroy something, or is decided elsewhere, clients ask about: only a project's own tools are so.
			foreign := tool.Name == "call_project_tool"
			if a := tool.Annotations; a.DestructiveHint == nil || *a.DestructiveHint != foreign || a.OpenWorldHint == nil || *a.OpenWorldHint != foreign {
				t.Errorf("%s: %+v", tool.Name, a)
			}
			if loaded := tool.Meta["anthropic/alwaysLoad"] == true; loaded != slices.Contains([]string{"claim_story", "update_story", "ask"}, tool.Name) {
				t.Errorf("%s is loaded always: %v", tool.Name, loaded)
			}
			if !changes {
				continue
			}
			result, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: tool.Name, Arguments: json.RawMessage(arguments)})
			if err != nil {
				t.Fatal(err)
			}
			text := ""
			for _, content := range result.Content {
				text += content.(*sdk.TextContent).Text
			}
			if refused := strings.Contains(text, "needs the role operator, and your token has the role viewer"); refused == mayChange || !result.IsError {
				t.Errorf("%s %s: %q", role, tool.Name, text)
			}
		}
	}
}

// documentedTools returns the tools in the table of docs/mcp.md.
func documentedTools(t *testing.T) (names []string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/mcp.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|.*\\| (?:viewer|operator|admin) \\|$").FindAllStringSubmatch(string(text), -1) {
		names = append(names, row[1])
	}
	return names
}
