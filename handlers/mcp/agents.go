package mcp

import (
	"context"

	"switchyard/internal/domain"
	"switchyard/internal/wire"
)

type agentJSON struct {
	ID              string            `json:"id"`
	Label           string            `json:"label"`
	State           domain.AgentState `json:"state"`
	Detail          string            `json:"detail"`
	AssignedProject *string           `json:"assigned_project"`
	LastSeenMS      int64             `json:"last_seen_ms"`
}

func encodeAgent(a domain.Agent) agentJSON {
	return agentJSON{a.ID, a.Label, a.State, short(a.Detail), wire.OrNull(a.Project), a.LastSeen.UnixMilli()}
}

func (s *Server) addAgents() {
	add(s, tool{
		name: "list_agents", needs: domain.RoleViewer,
		description: "The live build agents, the projects to which they are assigned, and the sessions of " +
			"coding agents: what each is doing, those that wait for a person first.",
	}, func(context.Context, struct{}) (any, error) {
		var agents list[agentJSON]
		for _, a := range s.service.Agents.Alive() {
			agents.add(encodeAgent(a))
		}
		sessions := wire.NewAgentSessions(s.service.Sessions.List())
		var live list[wire.AgentSession]
		for _, one := range sessions.Sessions {
			one.CWD, one.By = short(one.CWD), short(one.By)
			live.add(one)
		}
		return map[string]any{
			"agents": agents.shown(), "more": agents.more,
			"sessions": live.shown(), "more_sessions": live.more + sessions.More,
		}, nil
	})
	add(s, tool{
		name: "assign_agent", needs: domain.RoleOperator, required: []string{"agent_id", "project"},
		nullable:    []string{"project"},
		description: "Send a build agent to a project, or to none (project: null). Returns the agent.",
		arguments:   `"agent_id":{"type":"string","description":"an id, not a label"},"project":{"type":["string","null"]}`,
	}, func(ctx context.Context, in struct {
		AgentID string  `json:"agent_id"`
		Project *string `json:"project"`
	},
	) (any, error) {
		agent, err := s.service.Agents.Assign(ctx, in.AgentID, wire.Text(in.Project))
		if err != nil {
			return nil, hint(err, domain.NotFound, "list_agents has the ids, and search finds agents by their labels")
		}
		return encodeAgent(agent), nil
	})
}
