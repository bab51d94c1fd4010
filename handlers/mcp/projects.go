package mcp

import (
	"context"
	"encoding/json"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"switchyard/internal/domain"
	"switchyard/internal/jsonscan"
)

func (s *Server) addProjects() {
	add(s, tool{
		name: "switch_project", needs: domain.RoleOperator, required: []string{"project"},
		description: "Make a project the active one, for everybody.",
		arguments:   `"project":{"type":"string"}`,
	}, func(ctx context.Context, in struct {
		Project string `json:"project"`
	},
	) (any, error) {
		if err := s.service.Projects.Switch(ctx, in.Project); err != nil {
			return nil, err
		}
		return map[string]any{"ok": true, "active": in.Project}, nil
	})
	add(s, tool{
		name: "project_tools", needs: domain.RoleViewer,
		description: "The tools of a project's own MCP server, with their schemas. Call them with call_project_tool.",
		arguments:   `"project":` + projectOrActive,
	}, s.projectTools)
	add(s, tool{
		name: callProjectTool, needs: domain.RoleOperator, agents: true, foreign: true,
		required:    []string{"tool", "arguments"},
		description: "Call a tool of a project's own MCP server; its answer is returned unchanged.",
		arguments:   `"project":` + projectOrActive + `,"tool":{"type":"string"},"arguments":{"type":"object"}`,
	}, s.callProjectTool)
}

const callProjectTool = "call_project_tool"

const projectOrActive = `{"type":"string","description":"the active one by default"}`

// maxSchema is the largest schema of a project's tool that is shown, in bytes. Larger ones are left out.
const maxSchema = 4 << 10

type projectToolJSON struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	// left out if there is no room: the server explains wrong arguments
	InputSchema json.RawMessage `json:"inputSchema,omitempty"`
}

func (s *Server) projectTools(ctx context.Context, in struct {
	Project string `json:"project"`
},
) (any, error) {
	project, tools, err := s.service.Tools.List(ctx, in.Project)
	if err != nil {
		return nil, s.explainTools(in.Project, err)
	}
	shown := list[projectToolJSON]{most: 500}
	for _, raw := range tools {
		var t projectToolJSON
		if json.Unmarshal(raw, &t) != nil || t.Name == "" {
			continue
		}
		t.Description = short(t.Description)
		if len(t.InputSchema) > maxSchema || shown.bytes > maxListBytes/2 {
			t.InputSchema = nil
		}
		shown.add(t)
	}
	return map[string]any{"project": project, "tools": shown.shown(), "more": shown.more}, nil
}

func (s *Server) callProjectTool(ctx context.Context, in struct {
	Project   string          `json:"project"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
},
) (any, error) {
	_, release, err := s.held.Hold(requestOf(ctx))
	if err != nil {
		return nil, err
	}
	defer release()
	progress, _ := ctx.Value(progressKey{}).(func(json.RawMessage))
	raw, err := s.service.Tools.Call(ctx, in.Project, in.Tool, in.Arguments, progress)
	if err != nil {
		err = s.explainTools(in.Project, err)
		return nil, hint(err, domain.Invalid, "project_tools lists its tools with their arguments")
	}
	result := jsonscan.NewReader(raw)
	answer := &sdk.CallToolResult{Content: []sdk.Content{}}
	refused := false
	for name := range result.Parts() {
		switch {
		case name.Is("content"):
			for range result.Parts() {
				if value := result.Value(); len(answer.Content) < maxContent {
					answer.Content = append(answer.Content, foreignContent{nil, value})
				} else {
					refused = true
				}
			}
		case name.Is("structuredContent") && result.Kind() != 'n':
			answer.StructuredContent = json.RawMessage(result.Value())
		case name.Is("isError"):
			answer.IsError = result.Kind() == 't'
		case name.Is("resultType"):
			refused = refused || string(result.Value()) == `"input_required"`
		}
	}
	if refused || result.Err() != nil {
		return nil, domain.WrapError(domain.BadGateway, result.Err(), "its tool asks for something that the gateway does "+
			"not pass on, or answers with too many parts")
	}
	return answer, nil
}

// maxContent is the most parts of a tool's answer.
const maxContent = 10_000

// foreignContent is content of any type, passed on unchanged. The pointer provides a method that the SDK does not
// export.
type foreignContent struct {
	*sdk.TextContent
	raw json.RawMessage
}

func (c foreignContent) MarshalJSON() ([]byte, error) { return c.raw, nil }

func (s *Server) explainTools(project string, err error) error {
	if domain.CodeOf(err) != domain.NotFound {
		return err
	}
	if project == "" && s.service.Projects.Registry().Active == "" {
		return hint(err, domain.NotFound, "Name one in project: overview shows them")
	}
	return hint(err, domain.NotFound, "Its stories can still be read and changed with get_story and update_story")
}
