package bot

import (
	"context"
	"fmt"
	"slices"
	"time"

	"switchyard/internal/domain"
)

// pipelineAge is how old the pipelines in an answer may be.
const pipelineAge = 2 * time.Second

// status counts projects and agents, and lists what needs attention.
func (c *commands) status(ctx context.Context, _ []word) Message {
	registry, pipelines := c.gateway.Pipelines.All(ctx, pipelineAge)
	alerts := c.gateway.Alerts.List(ctx)
	reachable := 0
	for _, p := range pipelines {
		if p.Reachable {
			reachable++
		}
	}
	active := Line{Plain("No project is active.")}
	if registry.Active != "" {
		active = Line{Plain("Active project: "), Bold(short(registry.Active, maxName))}
	}
	m := Message{active, {Plain(fmt.Sprintf("%s, %d reachable; %s alive",
		domain.Count(len(pipelines), "project", "projects"), reachable,
		domain.Count(len(c.gateway.Agents.Alive()), "agent", "agents")))}}
	if alerts.Open == 0 {
		return append(m, Line{Plain("● Nothing needs attention.")})
	}
	return appendLines(m, alerts.Items[:min(alerts.Open, len(alerts.Items))], alerts.Open, c.alertLine)
}

func (c *commands) alertLine(a domain.Alert) Line {
	line := sign(a.Kind.Signal())
	if a.Story == nil {
		return append(line, Plain(short(a.Text(), 2*maxName+maxReason)))
	}
	trouble := a.Kind.Word()
	if a.Kind == domain.AlertStuck {
		trouble += " in " + stageTitle(a.Stage)
	}
	d := domain.EventDetails{StoryID: a.Story.StoryID, StoryName: a.Story.StoryName, Reason: a.Reason}
	return slices.Concat(line, columns(Line{Bold(short(a.Project, maxName))}, Line{Plain(trouble)}, c.links.title(a.Project, d)), reason(d))
}
