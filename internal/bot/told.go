package bot

import (
	"cmp"
	"time"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
)

// told is what somebody tells the team: who, a word of their own, and a line for each story.
func (l links) told(t domain.Telling) Message {
	first := Line{Bold(Short(t.By, MaxName))}
	if t.Word != "" {
		first = append(first, Plain(": "+Short(t.Word, domain.MaxWord)))
	}
	return appendLines(Message{first}, t.Stories, len(t.Stories)+t.More, l.toldStory)
}

func (l links) toldStory(s domain.ToldStory) Line {
	signal, trouble := domain.SignalNone, ""
	switch {
	case s.Blocked != "":
		signal, trouble = domain.SignalStop, "blocked"
	case s.MergeFailure != "":
		signal, trouble = domain.SignalCaution, "merge failed"
	}
	d := domain.EventDetails{StoryID: s.StoryID, StoryName: s.StoryName, Reason: cmp.Or(s.Blocked, s.MergeFailure)}
	stage := Short(s.Stage, MaxName)
	if s.Since.UnixMilli() > 0 {
		stage += " for " + roughly(clock.Now().Sub(s.Since))
	}
	line := columns(Line{Bold(s.Project)}, l.title(s.Project, d), Line{Plain(stage)})
	if trouble != "" {
		line = append(columns(line, Line{Plain(trouble)}), reason(d)...)
	}
	return append(sign(signal), line...)
}

func roughly(d time.Duration) string {
	switch day := 24 * time.Hour; {
	case d >= 2*day:
		return domain.Count(int(d/day), "day", "days")
	case d >= 2*time.Hour:
		return domain.Count(int(d/time.Hour), "hour", "hours")
	}
	return domain.Count(max(1, int(d/time.Minute)), "minute", "minutes")
}
