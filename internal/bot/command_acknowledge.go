package bot

import (
	"context"
	"time"

	"switchyard/internal/domain"
)

// acknowledge acknowledges the alert of a story, for a time if one is given.
func (c *commands) acknowledge(ctx context.Context, call storyCall) Message {
	until, duration := "until it changes", time.Duration(0)
	if len(call.rest) > 0 {
		text := call.rest[0].text
		var err error
		if duration, err = domain.ParseAcknowledgedFor(text); err != nil {
			return Message{{Code(short(text, maxName)), Plain(" is not a duration; write one like "), Code("4h"), Plain(" or "), Code("1h30m"), Plain(".")}}
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
