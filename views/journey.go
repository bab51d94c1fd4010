package views

import (
	"slices"
	"strings"
	"time"

	"switchyard/internal/domain"
)

type step struct {
	stage   string
	title   string
	past    bool // the story is beyond it
	been    bool // it was in this stage
	here    bool
	git     bool      // only git knows when it came here
	since   time.Time // when it arrived here
	atLeast bool      // or earlier
	signal  Signal    // the story's, where it is
	text    string    // how long it was here, and how long stories usually are
	rail    string    // the class that says where the second rail is
}

// journey returns a story's steps through the stages of its project, and through those that only its history has.
func journey(p StoryProps) []step {
	s := p.Story
	stages := domain.Map(p.Stages, func(stage domain.Stage) string { return stage.Name })
	spent, blocked, live := map[string]time.Duration{}, map[string]time.Duration{}, map[string]bool{}
	for _, visit := range s.Visits {
		live[visit.Stage] = live[visit.Stage] || visit.Source != domain.FromGit
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
	base, done := p.baseStep(stages, at), domain.DoneStage(p.Stages)
	steps := make([]step, len(stages))
	for i, stage := range stages {
		long, been := spent[stage]
		st := step{stage: stage, past: i < at, been: been, here: i == at, signal: SignalNone}
		var words []string
		if st.here {
			st.since, st.atLeast, words = s.Since, s.SinceAtLeast, make([]string, 1)
			st.signal, words[0] = stateWord(domain.Item{Blocked: s.Blocked, MergeFailure: s.MergeFailure}, domain.Overdue{})
			if been {
				words = append(words, duration(long)+" before")
			}
		} else if been {
			words = append(words, duration(long))
		}
		if base >= 0 {
			st.rail = secondRail(i, base, at, done)
		}
		if i == base {
			words = append(words, baseName(p.Main)+" has it here")
		}
		isLive, visited := live[stage]
		st.git = visited && !isLive
		if blocked[stage] >= minBlocked {
			words = append(words, "blocked for "+duration(blocked[stage]))
		}
		words = slices.DeleteFunc(append(words, usually(p.Usual, stage)), func(word string) bool { return word == "" })
		for i := range words {
			words[i] = strings.ReplaceAll(words[i], " ", "\u00a0")
		}
		if st.text = strings.Join(words, " · "); st.text != "" && !st.since.IsZero() {
			st.text = " · " + st.text
		}
		st.title = p.stageTitle(stage)
		steps[i] = st
	}
	return steps
}

// baseStep returns the index of the stage where the project's own work tree has a story that has moved on elsewhere,
// -1 for none.
func (p StoryProps) baseStep(stages []string, at int) int {
	if p.Story.File == nil || p.Story.File.BaseStage == "" {
		return -1
	}
	if base := slices.Index(stages, p.Story.File.BaseStage); base < at {
		return base
	}
	return -1
}

// secondRail returns the class of a stage by its index: the second rail branches off where the base has the story, is
// travelled as far as the story is, and is to rejoin the first one in the done stage.
func secondRail(i, base, at, done int) string {
	switch {
	case i == base:
		return "parts"
	case i > base && i < at || i == at && at >= done:
		return "upper"
	case i == at:
		return "upper leaves"
	case i > at && i < done:
		return "due"
	case i == done && at < done:
		return "joins"
	}
	return ""
}

// minBlocked is the shortest block in a stage that is mentioned.
const minBlocked = time.Minute
