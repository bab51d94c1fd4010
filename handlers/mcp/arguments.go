package mcp

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"switchyard/internal/domain"
)

// understand returns the arguments of a call in the form that its tool expects: without the nulls that models write for
// omitted ones, unless null means something else; with the project of an agent that names none; and with the stage and
// story names that are meant. It returns Forbidden for a tool that the caller may not call, NotFound for a project that
// does not exist, and Invalid if a required one is missing.
func (s *Server) understand(r *http.Request, name string, arguments json.RawMessage) (json.RawMessage, error) {
	t, known := s.tools[name]
	if !known {
		return arguments, nil // the SDK refuses it
	}
	actor := domain.ActorOf(r.Context())
	if err := t.allow(actor); err != nil {
		return nil, err
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(arguments, &members) != nil || members == nil {
		members = map[string]json.RawMessage{}
		if len(arguments) > 0 && string(arguments) != "null" {
			return arguments, nil // the SDK refuses anything but an object
		}
	}
	for member, value := range members {
		if string(value) == "null" && !slices.Contains(t.nullable, member) {
			delete(members, member)
		}
	}
	_, named := members["project"]
	if !named && scopedTool(t) && actor.AgentID != "" && actor.Project != "" {
		members["project"], named = domain.EncodeJSON(actor.Project), true
	}
	var project string
	isText := json.Unmarshal(members["project"], &project) == nil && string(members["project"]) != "null"
	if isText || t.ofProject && !named {
		if err := s.checkProject(project); err != nil {
			return nil, err
		}
	}
	stages := s.service.Pipelines.Stages(project)
	for member, find := range map[string]func([]domain.Stage, string) (string, error){
		"story_id": domain.FindStory, "stage": domain.FindStage, "from": domain.FindStage, "to": domain.FindStage,
	} {
		var text string
		if json.Unmarshal(members[member], &text) != nil || text == "" {
			continue
		}
		meant, err := find(stages, text)
		if err != nil {
			return nil, domain.Errorf(domain.Invalid, "%s: %s", member, domain.MessageOf(err))
		}
		members[member] = domain.EncodeJSON(meant)
	}
	return domain.EncodeJSON(members), nil
}

// scopedTool reports whether a tool works on a project that an agent need not name.
func scopedTool(t tool) bool {
	return strings.Contains(t.arguments, `"project":`) && !slices.Contains(t.nullable, "project")
}

// refusedCall is the result of a call whose arguments cannot be understood.
func (s *Server) refusedCall(r *http.Request, err error) *sdk.CallToolResult {
	result := &sdk.CallToolResult{}
	result.SetError(s.explain(r, err))
	return result
}
