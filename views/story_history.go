package views

import (
	"slices"
	"strings"
	"time"

	"switchyard/internal/domain"
)

// step is a stage in a story's journey.
type step struct {
	stage  string
	past   bool // the story is beyond it
	been   bool // it was in this stage
	here   bool
	since  time.Time // when it arrived here
	signal Signal    // of the story, where it is
	text   string    // how long it was here, and how long stories usually are
}

// journey returns a story's steps through the stages of its project, and through those that only its history has.
func journey(p StoryProps) []step {
	s := p.Story
	stages := slices.Clone(p.Stages)
	spent, blocked := map[string]time.Duration{}, map[string]time.Duration{}
	for _, visit := range s.Visits {
		if !slices.Contains(stages, visit.Stage) {
			stages = append(stages, visit.Stage)
		}
		if !visit.To.IsZero() {
			spent[visit.Stage] += visit.To.Sub(visit.From)
			blocked[visit.Stage] += visit.Blocked
		}
	}
	if s.Stage != "" && !slices.Contains(stages, s.Stage) {
		stages = append(stages, s.Stage)
	}
	at := slices.Index(stages, s.Stage) // -1 when it is on no board
	steps := make([]step, len(stages))
	for i, stage := range stages {
		long, been := spent[stage]
		st := step{stage: stage, past: i < at, been: been, here: i == at, signal: SignalNone}
		var words []string
		if st.here {
			st.since = s.Since
			st.signal, words = stateWord(s)
			if been {
				words = append(words, duration(long)+" before")
			}
		} else if been {
			words = append(words, duration(long))
		}
		if blocked[stage] >= minBlocked {
			words = append(words, "blocked for "+duration(blocked[stage]))
		}
		for _, u := range p.Usual {
			if u.Stage == stage && u.Visits > 0 {
				words = append(words, "usually "+duration(u.Median))
			}
		}
		for i := range words {
			words[i] = strings.ReplaceAll(words[i], " ", "\u00a0")
		}
		if st.text = strings.Join(words, " · "); st.text != "" && !st.since.IsZero() {
			st.text = " · " + st.text
		}
		steps[i] = st
	}
	return steps
}

// minBlocked is the shortest time of being blocked in a stage that is mentioned.
const minBlocked = time.Minute

func stateWord(s domain.Story) (Signal, []string) {
	switch {
	case s.Blocked != "":
		return SignalStop, []string{"blocked"}
	case s.MergeFailure != "":
		return SignalCaution, []string{"merge failed"}
	}
	return SignalNone, nil
}

// entry is something that happened to a story.
type entry struct {
	signal      Signal
	title, text string
	at          time.Time
	after       string // how long it was in the stage before
}

// timeline returns a story's history, newest first.
func timeline(s domain.Story) []entry {
	var entries []entry
	moved := map[int64]bool{}
	for _, e := range s.History {
		kind, d := e.Type.Kind(), e.Details()
		n := entry{signal: signal(kind.Signal), title: upper(kind.Says(d)), text: d.Reason, at: eventTime(e)}
		if e.Type == domain.StageTransition {
			moved[e.At.UnixMilli()] = true
			for _, visit := range s.Visits {
				if visit.Stage == d.FromStage && visit.To.Equal(e.At) {
					n.after = " · after " + duration(visit.To.Sub(visit.From))
				}
			}
		}
		entries = append(entries, n)
	}
	for _, visit := range s.Visits {
		if !moved[visit.From.UnixMilli()] && !visit.From.IsZero() {
			entries = append(entries, entry{
				signal: SignalNone, title: "Came to " + domain.StageTitle(visit.Stage),
				at: visit.From,
			})
		}
	}
	slices.SortStableFunc(entries, func(a, b entry) int { return a.at.Compare(b.at) })
	slices.Reverse(entries)
	return entries
}

// clockText returns a time of day, with the date unless it is today.
func clockText(at, now time.Time) string {
	switch {
	case at.Format(time.DateOnly) == now.Format(time.DateOnly):
		return "today " + at.Format("15:04")
	case at.Year() == now.Year():
		return at.Format("2 Jan 15:04")
	}
	return at.Format("2 Jan 2006 15:04")
}
