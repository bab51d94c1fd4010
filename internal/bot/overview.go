package bot

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"switchyard/internal/domain"
)

func (c *commands) events(ctx context.Context, _ []word) Message {
	page, err := c.gateway.Events.Page(ctx, domain.EventQuery{Backward: true, Limit: 10})
	if err != nil {
		return c.failed(ctx, err)
	}
	if len(page.Events) == 0 {
		return Message{{Plain("Nothing has happened yet.")}}
	}
	slices.Reverse(page.Events)
	m := Message{{Bold("Latest events"), Plain(" (UTC)")}}
	for _, e := range page.Events {
		at := time.UnixMilli(e.TimestampMS).UTC().Format("2 Jan 15:04")
		m = append(m, append(Line{Plain(at + " ")}, describe(e)...))
	}
	return m
}

func (c *commands) agents(context.Context, []word) Message {
	agents := c.gateway.Agents.Alive()
	if len(agents) == 0 {
		return Message{{Plain("No agent is alive.")}}
	}
	m := Message{{Bold(plural(int64(len(agents)), "agent", "agents"))}}
	for i, a := range agents {
		if i == maxLines {
			m = append(m, Line{Plain(fmt.Sprintf("and %d more", len(agents)-i))})
			break
		}
		line := Line{Bold(short(a.Label, maxName)), Plain(" "), Code(a.ID), Plain(" " + string(a.State) + ", ")}
		if a.Project == "" {
			line = append(line, Plain("unassigned"))
		} else {
			line = append(line, Plain("assigned to "), Bold(short(a.Project, maxName)))
		}
		m = append(m, line)
	}
	return m
}

// pipelineAge is how old the pipelines in an answer may be.
const pipelineAge = 2 * time.Second

// status says how many of everything there are, and what needs somebody.
func (c *commands) status(ctx context.Context, _ []word) Message {
	registry, pipelines := c.gateway.Pipelines.All(ctx, pipelineAge)
	attention, err := c.gateway.Alerts.List(ctx, pipelines)
	if err != nil {
		return c.failed(ctx, err)
	}
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
		plural(int64(len(pipelines)), "project", "projects"), reachable,
		plural(int64(len(c.gateway.Agents.Alive())), "agent", "agents")))}}
	if len(attention) == 0 {
		return append(m, Line{Plain("● Nothing needs attention.")})
	}
	for i, a := range attention {
		if i == maxLines {
			m = append(m, Line{Plain(fmt.Sprintf("and %d more", len(attention)-i))})
			break
		}
		m = append(m, attentionLine(a))
	}
	return m
}

func attentionLine(a domain.Alert) Line {
	sign := "▲ "
	if a.Kind.Stops() {
		sign = "■ "
	}
	if a.Story == nil {
		return Line{Plain(sign + short(a.Text(), 2*maxName+maxReason))}
	}
	words := " stuck in " + stageTitle(a.Stage) + " "
	switch a.Kind {
	case domain.AlertBlocked:
		words = " blocked "
	case domain.AlertMerge:
		words = " merge failed "
	}
	d := domain.EventDetails{StoryID: a.Story.StoryID, StoryName: a.Story.StoryName, Reason: a.Reason}
	return slices.Concat(Line{Plain(sign), Bold(short(a.Project, maxName)), Plain(words)}, story(d), reason(d))
}

// projects lists every project with the number of stories in each stage.
func (c *commands) projects(ctx context.Context, _ []word) Message {
	registry, pipelines := c.gateway.Pipelines.All(ctx, pipelineAge)
	if len(pipelines) == 0 {
		return Message{{Plain("No project is registered.")}}
	}
	m := Message{{Bold(plural(int64(len(pipelines)), "project", "projects"))}}
	for i, p := range pipelines {
		if i == maxLines {
			m = append(m, Line{Plain(fmt.Sprintf("and %d more", len(pipelines)-i))})
			break
		}
		m = append(m, projectLine(p, p.Project == registry.Active))
	}
	return m
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
