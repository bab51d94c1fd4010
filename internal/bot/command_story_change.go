package bot

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"switchyard/internal/domain"
)

// move moves a story to a stage, given by its name or its title.
func (c *commands) move(ctx context.Context, call storyCall) Message {
	stages := c.stagesOf(ctx, call.Project)
	to := matchStages(stages, join(call.rest))
	switch {
	case len(to) != 1:
		m := Line{Bold(short(call.Project, maxName)), Plain(" has no stage "), Code(short(join(call.rest), maxName)), Plain(".")}
		if len(to) > 1 {
			m, stages = Line{Plain("Several stages have this title; use a stage's name:")}, to
		}
		return appendLines(Message{m}, stages, len(stages), func(name string) Line { return Line{Code(short(name, maxName)), Plain(" – " + stageTitle(name))} })
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
	id, project := c.links.story(ref.Project, ref.ID), Bold(short(ref.Project, maxName))
	switch {
	case story.Error != "":
		return Message{{Plain("The project server of "), project, Plain(" cannot be reached: " + short(story.Error, maxReason))}}
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
	said := short(string(answer[:min(len(answer), 4*maxReason)]), maxReason)
	unknown := Line{Plain("It is not known whether "), id, Plain(" was changed: the project server of "), project}
	switch {
	case ctx.Err() != nil: // Slack does not wait for long
		return Message{append(unknown, Plain(" has not answered yet."))}
	case domain.CodeOf(err) == domain.BadGateway:
		return Message{append(unknown, Plain(" failed: "+short(domain.MessageOf(err), maxReason)))}
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
