package bot

import (
	"context"
	"strings"

	"switchyard/internal/domain"
)

func (c *commands) switchTo(ctx context.Context, words []word) Message {
	name := join(words)
	if name == "" {
		return usage("switch NAME")
	}
	if err := c.gateway.Projects.Switch(ctx, name); err != nil {
		return c.failed(ctx, err)
	}
	return Message{{Plain("The active project is now "), Bold(name), Plain(".")}}
}

func (c *commands) assign(ctx context.Context, words []word) Message {
	agents, rest := c.findAgents(words)
	if len(words) < 2 || len(agents) == 1 && len(rest) == 0 {
		return usage("assign AGENT NAME|none")
	}
	switch len(agents) {
	case 0:
		return Message{{Plain("Unknown agent "), Code(short(words[0].text, maxName)), Plain(". Say "), Code("agents"), Plain(" for a list.")}}
	case 1:
	default:
		m := Message{{Plain("Several agents have this label; use one of their ids:")}}
		for _, a := range agents {
			m = append(m, Line{Code(a.ID)})
		}
		return m
	}
	project := join(rest)
	if len(rest) == 1 && !rest[0].quoted && strings.EqualFold(project, "none") {
		project = ""
	}
	agent, err := c.gateway.Agents.Assign(ctx, agents[0].ID, project)
	if err != nil {
		return c.failed(ctx, err)
	}
	if project == "" {
		return Message{{Bold(agent.Label), Plain(" is no longer assigned to a project.")}}
	}
	return Message{{Bold(agent.Label), Plain(" is now assigned to "), Bold(project), Plain(".")}}
}

// findAgents returns the agents whose id or label words begin with, the longest match, and the words after it.
func (c *commands) findAgents(words []word) ([]domain.Agent, []word) {
	all := c.gateway.Agents.Alive()
	for n := len(words); n > 0; n-- {
		name := join(words[:n])
		var found []domain.Agent
		for _, a := range all {
			if a.ID == name {
				return []domain.Agent{a}, words[n:]
			}
			if a.Label == name {
				found = append(found, a)
			}
		}
		if len(found) > 0 {
			return found, words[n:]
		}
	}
	return nil, words
}
