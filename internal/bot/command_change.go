package bot

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"switchyard/internal/domain"
)

// changeCommands has the commands that change something.
type changeCommands struct{ *commands }

func (c changeCommands) switchTo(ctx context.Context, words []word) Message {
	name := join(words)
	if name == "" {
		return usage("switch NAME")
	}
	if err := c.gateway.Projects.Switch(ctx, name); err != nil {
		return c.failed(ctx, err)
	}
	return plainf("The active project is now %s.", Bold(name))
}

func (c changeCommands) assign(ctx context.Context, words []word) Message {
	agents, rest := c.findAgents(words)
	if len(words) < 2 || len(agents) == 1 && len(rest) == 0 {
		return usage("assign AGENT NAME|none")
	}
	switch len(agents) {
	case 0:
		return plainf("Unknown agent %s. Say %s for a list.", Code(words[0].text), Code("agents"))
	case 1:
	default:
		m := plainf("Several agents have this label; use one of their ids:")
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
		return plainf("%s is no longer assigned to a project.", Bold(agent.Label))
	}
	return plainf("%s is now assigned to %s.", Bold(agent.Label), Bold(project))
}

// findAgents returns the agents whose id or label words begin with, the longest match, and the words after it.
func (c changeCommands) findAgents(words []word) ([]domain.Agent, []word) {
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

func (c changeCommands) acknowledge(ctx context.Context, ref domain.StoryRef, rest []word) Message {
	until, duration := "until it changes", time.Duration(0)
	if len(rest) > 0 {
		text := rest[0].text
		var err error
		if duration, err = domain.ParseAcknowledgedFor(text); err != nil {
			return plainf("%s is not a duration; write one like %s or %s.", Code(text), Code("4h"), Code("1h30m"))
		}
		until = "for " + text
	}
	id := c.links.story(ref.Project, ref.ID)
	for _, kind := range domain.StoryAlerts {
		err := c.gateway.Alerts.Acknowledge(ctx, storyAlert(kind, ref.Project, ref.ID), duration)
		switch {
		case err == nil:
			return plainf("%s (%s) is acknowledged %s.", id, kind.Word(), until)
		case domain.CodeOf(err) != domain.NotFound:
			return c.failed(ctx, err)
		}
	}
	return plainf("%s has no alert: there is nothing to acknowledge.", id)
}

func storyAlert(kind domain.AlertKind, project, id string) string {
	return domain.Alert{Kind: kind, Project: project, Story: &domain.Item{StoryID: id}}.Key()
}

// move moves a story to a stage, given by its name or its title.
func (c changeCommands) move(ctx context.Context, ref domain.StoryRef, rest []word) Message {
	_, pipelines := c.gateway.Pipelines.All(ctx, pipelineAge)
	var stages []domain.Stage
	for _, p := range pipelines {
		if p.Project == ref.Project {
			stages = p.Stages
		}
	}
	to := domain.MatchStages(stages, join(rest))
	if len(to) != 1 {
		m := plainf("%s has no stage %s.", Bold(ref.Project), Code(join(rest)))
		if len(to) > 1 {
			m, stages = plainf("Several stages have this title; use a stage's name:"), to
		}
		return appendLines(m, stages, len(stages), func(s domain.Stage) Line {
			return Line{Code(s.Name), Plain(" – " + stageTitle(s.Title()))}
		})
	}
	id, title := c.links.story(ref.Project, ref.ID), stageTitle(to[0].Title())
	return c.change(ctx, ref, storyChange{
		fields: map[string]any{"stage": to[0].Name},
		done:   plainf("%s is now in %s.", id, title),
		idle:   plainf("%s is in %s already.", id, title),
		isIdle: func(s domain.Story) bool { return s.Stage == to[0].Name },
	})
}

func (c changeCommands) unblock(ctx context.Context, ref domain.StoryRef, _ []word) Message {
	id := c.links.story(ref.Project, ref.ID)
	return c.change(ctx, ref, storyChange{
		fields: map[string]any{"blocked": nil},
		done:   plainf("%s is no longer blocked.", id),
		idle:   plainf("%s is not blocked.", id),
		isIdle: func(s domain.Story) bool { return s.Blocked == "" },
	})
}

// storyChange is a change of a story, with what is said about it.
type storyChange struct {
	fields     map[string]any // of the project server's API
	done, idle Message        // when it is made; when there is nothing to change
	isIdle     func(domain.Story) bool
}

// change changes the current version of a story, and says that it is done or why not.
func (c changeCommands) change(ctx context.Context, ref domain.StoryRef, change storyChange) Message {
	story, err := c.gateway.Stories.Get(ctx, ref.Project, ref.ID)
	if err != nil {
		return c.failed(ctx, err)
	}
	id, project := c.links.story(ref.Project, ref.ID), Bold(ref.Project)
	readOnly := plainf("The project server of %s does not allow changes; it must be started with %s.",
		project, Code("--allow-writes"))
	switch {
	case story.Error != "":
		return plainf("The project server of %s cannot be reached: %s", project, story.Error)
	case story.File == nil && ref.Stage == "":
		return plainf("%s is not on the board of %s.", id, project)
	case story.File == nil || !story.File.Writable:
		return readOnly
	case change.isIdle(story):
		return change.idle
	}
	change.fields["version"] = story.File.Version
	status, answer, err := c.gateway.Stories.Patch(ctx, ref.Project, ref.ID, domain.EncodeJSON(change.fields))
	said := string(answer[:min(len(answer), 4*MaxReason)])
	const unknown = "It is not known whether %s was changed: the project server of %s "
	switch {
	case ctx.Err() != nil: // Slack does not wait for long
		return plainf(unknown+"has not answered yet.", id, project)
	case domain.CodeOf(err) == domain.BadGateway:
		return plainf(unknown+"failed: %s", id, project, domain.MessageOf(err))
	case err != nil:
		return c.failed(ctx, err)
	case status == http.StatusOK:
		return change.done
	case status == http.StatusForbidden:
		return readOnly
	case status == http.StatusNotFound:
		return plainf("%s is no longer on the board of %s.", id, project)
	case status == http.StatusConflict:
		return plainf("%s was not changed: %s", id, said)
	}
	return plainf("%s was not changed. The project server answered with status %s: %s", id, strconv.Itoa(status), said)
}
