package bot

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

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
		return Message{{Plain("Unknown agent "), Code(Short(words[0].text, MaxName)), Plain(". Say "), Code("agents"), Plain(" for a list.")}}
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

// acknowledge acknowledges the alert of a story, for a time if one is given.
func (c *commands) acknowledge(ctx context.Context, call storyCall) Message {
	until, duration := "until it changes", time.Duration(0)
	if len(call.rest) > 0 {
		text := call.rest[0].text
		var err error
		if duration, err = domain.ParseAcknowledgedFor(text); err != nil {
			return Message{{Code(Short(text, MaxName)), Plain(" is not a duration; write one like "), Code("4h"), Plain(" or "), Code("1h30m"), Plain(".")}}
		}
		until = "for " + text
	}
	id := c.links.story(call.Project, call.ID)
	for _, kind := range []domain.AlertKind{domain.AlertBlocked, domain.AlertMerge, domain.AlertStuck} {
		err := c.gateway.Alerts.Acknowledge(ctx, storyAlert(kind, call.Project, call.ID), duration)
		switch {
		case err == nil:
			return Message{{id, Plain(" (" + kind.Word() + ") is acknowledged " + until + ".")}}
		case domain.CodeOf(err) != domain.NotFound:
			return c.failed(ctx, err)
		}
	}
	return Message{{id, Plain(" has no alert: there is nothing to acknowledge.")}}
}

// storyAlert returns the key of an alert about a story.
func storyAlert(kind domain.AlertKind, project, id string) string {
	return domain.Alert{Kind: kind, Project: project, Story: &domain.Item{StoryID: id}}.Key()
}

// move moves a story to a stage, given by its name or its title.
func (c *commands) move(ctx context.Context, call storyCall) Message {
	stages := c.stagesOf(ctx, call.Project)
	to := matchStages(stages, join(call.rest))
	switch {
	case len(to) != 1:
		m := Line{Bold(Short(call.Project, MaxName)), Plain(" has no stage "), Code(Short(join(call.rest), MaxName)), Plain(".")}
		if len(to) > 1 {
			m, stages = Line{Plain("Several stages have this title; use a stage's name:")}, to
		}
		return appendLines(Message{m}, stages, len(stages), func(name string) Line { return Line{Code(Short(name, MaxName)), Plain(" – " + stageTitle(name))} })
	}
	title := stageTitle(to[0])
	return c.change(ctx, call.StoryRef, storyChange{
		fields: map[string]any{"stage": to[0]},
		done:   " is now in " + title + ".",
		idle:   " is in " + title + " already.",
		isIdle: func(s domain.Story) bool { return s.Stage == to[0] },
	})
}

// unblock removes the block from a story.
func (c *commands) unblock(ctx context.Context, call storyCall) Message {
	return c.change(ctx, call.StoryRef, storyChange{
		fields: map[string]any{"blocked": nil},
		done:   " is no longer blocked.",
		idle:   " is not blocked.",
		isIdle: func(s domain.Story) bool { return s.Blocked == "" },
	})
}

// stagesOf returns the names of a project's stages.
func (c *commands) stagesOf(ctx context.Context, project string) []string {
	var names []string
	_, pipelines := c.gateway.Pipelines.All(ctx, pipelineAge)
	for _, p := range pipelines {
		if p.Project != project {
			continue
		}
		for _, stage := range p.Stages {
			names = append(names, stage.Name)
		}
	}
	return names
}

// matchStages returns the stage of this name, or else those of this title, ignoring case.
func matchStages(stages []string, text string) []string {
	var titled []string
	for _, name := range stages {
		if name == text {
			return []string{name}
		}
		if strings.EqualFold(name, text) || strings.EqualFold(domain.StageTitle(name), text) {
			titled = append(titled, name)
		}
	}
	return titled
}

// storyChange is a change, with the words after the story's id in the answer: when it is made, and when there is nothing to change.
type storyChange struct {
	fields     map[string]any // of the project server's API
	done, idle string
	isIdle     func(domain.Story) bool
}

// change changes the current version of a story, and says that it is done or why not.
func (c *commands) change(ctx context.Context, ref domain.StoryRef, change storyChange) Message {
	story, err := c.gateway.Stories.Get(ctx, ref.Project, ref.ID)
	if err != nil {
		return c.failed(ctx, err)
	}
	id, project := c.links.story(ref.Project, ref.ID), Bold(Short(ref.Project, MaxName))
	switch {
	case story.Error != "":
		return Message{{Plain("The project server of "), project, Plain(" cannot be reached: " + Short(story.Error, MaxReason))}}
	case story.File == nil && ref.Stage == "":
		return Message{{id, Plain(" is not on the board of "), project, Plain(".")}}
	case story.File == nil || !story.File.Writable:
		return readOnly(project)
	case change.isIdle(story):
		return Message{{id, Plain(change.idle)}}
	}
	change.fields["version"] = story.File.Version
	body, err := json.Marshal(change.fields)
	if err != nil {
		return c.failed(ctx, err)
	}
	status, answer, err := c.gateway.Stories.Patch(ctx, ref.Project, ref.ID, body)
	said := Short(string(answer[:min(len(answer), 4*MaxReason)]), MaxReason)
	unknown := Line{Plain("It is not known whether "), id, Plain(" was changed: the project server of "), project}
	switch {
	case ctx.Err() != nil: // Slack does not wait for long
		return Message{append(unknown, Plain(" has not answered yet."))}
	case domain.CodeOf(err) == domain.BadGateway:
		return Message{append(unknown, Plain(" failed: "+Short(domain.MessageOf(err), MaxReason)))}
	case err != nil:
		return c.failed(ctx, err)
	case status == http.StatusOK:
		return Message{{id, Plain(change.done)}}
	case status == http.StatusForbidden:
		return readOnly(project)
	case status == http.StatusNotFound:
		return Message{{id, Plain(" is no longer on the board of "), project, Plain(".")}}
	case status == http.StatusConflict:
		return Message{{id, Plain(" was not changed: " + said)}}
	}
	return Message{{id, Plain(fmt.Sprintf(" was not changed. The project server answered with status %d: %s", status, said))}}
}

func readOnly(project Span) Message {
	return Message{{Plain("The project server of "), project, Plain(" does not allow changes; it must be started with "), Code("--allow-writes"), Plain(".")}}
}
