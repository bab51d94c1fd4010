package bot

import (
	"context"
	"fmt"
	"time"

	"switchyard/internal/domain"
)

// story answers with what is known about a story.
func (c *commands) story(ctx context.Context, call storyCall) Message {
	s, err := c.gateway.Stories.Get(ctx, call.Project, call.ID)
	if err != nil {
		return c.failed(ctx, err)
	}
	m := Message{columns(Line{Bold(short(s.Project, maxName))}, c.links.title(s.Project, domain.EventDetails{StoryID: s.ID, StoryName: s.Name}))}
	if s.Error != "" {
		m = append(m, Line{Plain("▲ The project server cannot be reached: " + short(s.Error, maxReason) + ". This is what was last known:")})
	}
	switch {
	case s.Stage != "":
		m = append(m, Line{Plain(stageTitle(s.Stage) + since(s.Since))})
	case call.Stage != "": // its server does not serve single stories
		m = append(m, Line{Plain(stageTitle(call.Stage))})
	default:
		m = append(m, Line{Plain("Not on the board.")})
	}
	if s.Blocked != "" {
		m = append(m, Line{Plain("■ Blocked" + since(s.BlockedSince) + ": " + short(s.Blocked, maxReason))})
	}
	if s.MergeFailure != "" {
		m = append(m, Line{Plain("▲ Merge failed: " + short(s.MergeFailure, maxReason))})
	}
	if s.File != nil && s.File.Criteria != nil {
		m = append(m, Line{Plain(fmt.Sprintf("Criteria: %d of %d done", s.File.Criteria.Done, s.File.Criteria.Total))})
	}
	return m
}

// since returns the time as text, "" for an unknown one.
func since(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return " since " + t.UTC().Format("2 Jan 2006 15:04") + " UTC"
}
