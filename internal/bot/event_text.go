package bot

import (
	"slices"
	"strconv"

	"switchyard/internal/domain"
)

// The longest texts from outside in a message, in characters.
const (
	maxName   = 100
	maxReason = 160
)

// separator separates the columns of a line, for readers without bold and monospaced text.
var separator = Plain(" · ")

// columns joins columns into a line.
func columns(columns ...Line) Line {
	var line Line
	for i, column := range columns {
		if i > 0 {
			line = append(line, separator)
		}
		line = append(line, column...)
	}
	return line
}

// describe returns an event as one line.
func (l links) describe(e domain.Event) Line {
	d := e.Details()
	project := Line{Bold(short(e.Project, maxName))}
	switch e.Type {
	case domain.StageTransition:
		return columns(project, l.title(e.Project, d), Line{Plain(stageTitle(d.FromStage) + " → " + stageTitle(d.ToStage))})
	case domain.StoryBlocked:
		return slices.Concat(Line{Plain("■ ")}, columns(project, Line{Bold("blocked")}, l.title(e.Project, d)), reason(d))
	case domain.MergeFailure:
		return slices.Concat(Line{Plain("▲ ")}, columns(project, Line{Bold("merge failed")}, l.title(e.Project, d)), reason(d))
	case domain.FeedGap:
		return columns(project, Line{Plain(plural(d.Missed, "event was", "events were") + " dropped by the project server before they were read")})
	}
	return columns(project, Line{Plain(short(string(e.Type), maxName))}, l.title(e.Project, d))
}

func stageTitle(name string) string { return short(domain.StageTitle(name), maxName) }

// title returns a story's id, and its name if it has one.
func (l links) title(project string, d domain.EventDetails) Line {
	id, name := Line{l.story(project, d.StoryID)}, short(d.StoryName, maxName)
	if name == "" || name == short(d.StoryID, maxName) {
		return id
	}
	return columns(id, Line{Plain(name)})
}

func reason(d domain.EventDetails) Line {
	if d.Reason == "" {
		return nil
	}
	return Line{Plain(": " + short(d.Reason, maxReason))}
}

func plural(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.FormatInt(n, 10) + " " + many
}
