package service

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"

	"switchyard/internal/domain"
)

// ToolServers calls the MCP servers of project servers. It limits time and size of responses.
type ToolServers interface {
	// ListTools returns the tools as the server describes them. It returns NotFound for a project without an MCP server
	// and Invalid for a refusal by the server. The messages of other errors say in words why there is no response.
	ListTools(ctx context.Context, p domain.Project) ([]json.RawMessage, error)
	// CallTool returns the result object unchanged; progress, unless nil, gets the params of each progress
	// notification. It returns the same errors as ListTools; one that wraps domain.ErrMayHaveRun came after the tool
	// was called.
	CallTool(
		ctx context.Context, p domain.Project, tool string, arguments json.RawMessage, progress func(json.RawMessage),
	) (json.RawMessage, error)
}

// ProjectTools calls the tools that project servers provide for coding agents.
type ProjectTools struct {
	audit    *Audit
	projects *Projects
	servers  ToolServers
}

// List returns the tools of a project, "" for the active one, and its name. It returns NotFound, Invalid and
// BadGateway.
func (s *ProjectTools) List(ctx context.Context, project string) (string, []json.RawMessage, error) {
	p, err := s.find(project)
	if err != nil {
		return "", nil, err
	}
	tools, err := s.servers.ListTools(ctx, p)
	return p.Name, tools, err
}

// Call calls a tool of a project, "" for the active one, with the results of ToolServers.
func (s *ProjectTools) Call(
	ctx context.Context, project, tool string, arguments json.RawMessage, progress func(json.RawMessage),
) (json.RawMessage, error) {
	p, err := s.find(project)
	if err != nil {
		return nil, err
	}
	if err := domain.ActorOf(ctx).CheckScope(p.Name); err != nil {
		return nil, err
	}
	result, err := s.servers.CallTool(ctx, p, tool, arguments, progress)
	if err == nil || errors.Is(err, domain.ErrMayHaveRun) {
		s.audit.changed(ctx, domain.Change{Action: domain.ProjectToolCalled, Subject: p.Name, Detail: "tool: " + tool})
	}
	return result, err
}

func (s *ProjectTools) find(name string) (domain.Project, error) {
	registry := s.projects.Registry()
	if name = cmp.Or(name, registry.Active); name == "" {
		return domain.Project{}, domain.Errorf(domain.NotFound, "no project is active")
	}
	p, found := registry.Find(name)
	if !found {
		return p, projectNotFound(name)
	}
	return p, nil
}
