package bot

import (
	"strconv"

	"switchyard/internal/domain"
)

// Longest texts of others in a message, in characters.
const (
	maxName   = 100
	maxReason = 160
)

// describe says what happened, in one line.
func describe(e domain.Event) Line {
	d := e.Details()
	project := Bold(short(e.Project, maxName))
	switch e.Type {
	case domain.StageTransition:
		return append(Line{project, Plain(" ")}, append(story(d),
			Plain(" "+stageTitle(d.FromStage)+" → "+stageTitle(d.ToStage)))...)
	case domain.StoryBlocked:
		return append(Line{Plain("■ "), project, Plain(" "), Bold("blocked"), Plain(" ")}, append(story(d), reason(d)...)...)
	case domain.MergeFailure:
		return append(Line{Plain("▲ "), project, Plain(" "), Bold("merge failed"), Plain(" ")}, append(story(d), reason(d)...)...)
	case domain.FeedGap:
		return Line{project, Plain(" " + plural(d.Missed, "event was", "events were") + " dropped by the project server before they were read")}
	}
	return append(Line{project, Plain(" " + short(string(e.Type), maxName) + " ")}, story(d)...)
}

func stageTitle(name string) string { return short(domain.StageTitle(name), maxName) }

func story(d domain.EventDetails) Line {
	id, name := short(d.StoryID, maxName), short(d.StoryName, maxName)
	if name == "" || name == id {
		return Line{Code(id)}
	}
	return Line{Code(id), Plain(" " + name)}
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
