package bot

import (
	"context"
	"fmt"
	"strings"
	"time"

	"switchyard/internal/yard"
)

// pipelineAge is how old the pipelines in an answer may be.
const pipelineAge = 2 * time.Second

// status says how many of everything there are, and what needs somebody.
func (c *commands) status(ctx context.Context, _ []word) Message {
	registry, pipelines := c.gateway.Pipelines(ctx, pipelineAge)
	var attention []Line
	reachable := 0
	for _, p := range pipelines {
		if !p.Reachable {
			attention = append(attention, Line{Plain("■ "), Bold(short(p.Project, maxName)), Plain(" is unreachable: " + short(p.Error, maxReason))})
			continue
		}
		reachable++
		attention = append(attention, troubles(p)...)
	}
	active := Line{Plain("No project is active.")}
	if registry.Active != "" {
		active = Line{Plain("Active project: "), Bold(registry.Active)}
	}
	m := Message{active, {Plain(fmt.Sprintf("%s, %d reachable; %s alive",
		plural(int64(len(pipelines)), "project", "projects"), reachable,
		plural(int64(len(c.gateway.Agents())), "agent", "agents")))}}
	if len(attention) == 0 {
		return append(m, Line{Plain("● Nothing needs attention.")})
	}
	if len(attention) > maxLines {
		rest := Line{Plain(fmt.Sprintf("and %d more", len(attention)-maxLines))}
		attention = append(attention[:maxLines:maxLines], rest)
	}
	return append(m, attention...)
}

// troubles are the blocked stories and failed merges of one project.
func troubles(p yard.ProjectPipeline) []Line {
	var lines []Line
	for _, stage := range p.Stages {
		for _, item := range stage.Items {
			d := yard.EventDetails{StoryID: item.StoryID, StoryName: item.StoryName}
			if item.Blocked != nil {
				d.Reason = *item.Blocked
				lines = append(lines, append(append(Line{Plain("■ "), Bold(short(p.Project, maxName)), Plain(" blocked ")}, story(d)...), reason(d)...))
			}
			if item.MergeFailure != nil {
				d.Reason = *item.MergeFailure
				lines = append(lines, append(append(Line{Plain("▲ "), Bold(short(p.Project, maxName)), Plain(" merge failed ")}, story(d)...), reason(d)...))
			}
		}
	}
	return lines
}

// projects lists every project with the number of stories in each stage.
func (c *commands) projects(ctx context.Context, _ []word) Message {
	registry, pipelines := c.gateway.Pipelines(ctx, pipelineAge)
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

func projectLine(p yard.ProjectPipeline, active bool) Line {
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
