package bot

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"switchyard/internal/domain"
)

// maxLines is the most entries that an answer lists.
const maxLines = 25

// appendLines appends a line for each of the first maxLines of count items, and one that counts the others. The caller may
// pass only the first maxLines items.
func appendLines[T any](m Message, items []T, count int, line func(T) Line) Message {
	shown := items[:min(len(items), maxLines)]
	for _, item := range shown {
		m = append(m, line(item))
	}
	if hidden := count - len(shown); hidden > 0 {
		m = append(m, Line{Plain(fmt.Sprintf("and %d more", hidden))})
	}
	return m
}

// projects lists every project with the number of stories in each stage.
func (c *commands) projects(ctx context.Context, _ []word) Message {
	registry, pipelines := c.gateway.Pipelines.All(ctx, pipelineAge)
	if len(pipelines) == 0 {
		return Message{{Plain("No projects are registered.")}}
	}
	m := Message{{Bold(domain.Count(len(pipelines), "project", "projects"))}}
	return appendLines(m, pipelines, len(pipelines), func(p domain.ProjectPipeline) Line { return projectLine(p, p.Project == registry.Active) })
}

func projectLine(p domain.ProjectPipeline, active bool) Line {
	sign, text := "● ", "no stages"
	if !p.Reachable {
		sign, text = "■ ", "unreachable, "+short(p.Error, maxReason)
	} else if len(p.Stages) > 0 {
		var stages []string
		for _, stage := range p.Stages {
			stages = append(stages, fmt.Sprintf("%s %d", stageTitle(stage.Name), len(stage.Items)))
		}
		text = strings.Join(stages, ", ")
	}
	line := Line{Plain(sign), Bold(short(p.Project, maxName))}
	if active {
		line = append(line, Plain(" (active)"))
	}
	return append(line, Plain(": "+text))
}

// agents lists the live agents.
func (c *commands) agents(context.Context, []word) Message {
	agents := c.gateway.Agents.Alive()
	if len(agents) == 0 {
		return Message{{Plain("No agents are alive.")}}
	}
	return appendLines(Message{{Bold(domain.Count(len(agents), "agent", "agents"))}}, agents, len(agents), func(a domain.Agent) Line {
		assigned := Line{Plain("unassigned")}
		if a.Project != "" {
			assigned = Line{Plain("assigned to "), Bold(short(a.Project, maxName))}
		}
		return columns(Line{Bold(short(a.Label, maxName))}, Line{Code(a.ID)}, Line{Plain(string(a.State))}, assigned)
	})
}

// events lists the latest events, newest last.
func (c *commands) events(ctx context.Context, _ []word) Message {
	page, err := c.gateway.Events.Page(ctx, domain.EventQuery{Backward: true, Limit: 10})
	if err != nil {
		return c.failed(ctx, err)
	}
	if len(page.Events) == 0 {
		return Message{{Plain("No events yet.")}}
	}
	slices.Reverse(page.Events)
	return appendLines(Message{{Bold("Latest events"), Plain(" (UTC)")}}, page.Events, len(page.Events), func(e domain.Event) Line {
		return columns(Line{Plain(e.At.UTC().Format("2 Jan 15:04"))}, c.links.describe(e))
	})
}
