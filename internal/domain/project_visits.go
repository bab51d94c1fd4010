package domain

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// ProjectVisits are the visits of a project's stories as far as pages need them: the open ones and the newest
// transitions. They do not change; With returns others.
type ProjectVisits struct {
	stages      []string             // at most maxStageNames; the other fields have indexes into it
	open        map[string]openVisit // by story id
	transitions []transition         // in order
	older       map[olderTransitions]int
}

type openVisit struct {
	number                                int64
	from, blocked, mergeFailed, eventAtMS int64 // Unix milliseconds, 0 if zero
	stage                                 uint8
	fromBoard, known                      bool // known: the stage is
}

// TransitionCount counts the transitions of a project between two stages in a time.
type TransitionCount struct {
	At          time.Time // its beginning
	Stage, Next string
	Count       int
}

// NewProjectVisits returns the visits of one project from its open ones, its newest ended ones in the order of their
// ends, and counts of those before.
func NewProjectVisits(visits []Visit, older []TransitionCount) *ProjectVisits {
	p := &ProjectVisits{open: map[string]openVisit{}}
	p.apply(visits, true)
	for _, o := range older {
		from, known := p.stage(o.Stage)
		to, knownToo := p.stage(o.Next)
		if known && knownToo {
			p.addOlder(olderTransitions{dayNumber(o.At), from, to}, o.Count)
		}
	}
	return p
}

// With returns the visits after changes, those of a story in the order of their numbers.
func (p *ProjectVisits) With(changed []Visit) *ProjectVisits {
	next := &ProjectVisits{
		stages: slices.Clone(p.stages), open: maps.Clone(p.open),
		transitions: slices.Clone(p.transitions), older: maps.Clone(p.older),
	}
	next.apply(changed, false)
	return next
}

// apply adds visits, or replaces earlier states of them. unknown means that there are none.
func (p *ProjectVisits) apply(visits []Visit, unknown bool) {
	for _, v := range visits {
		if !v.To.IsZero() {
			if last, ok := p.open[v.StoryID]; ok && last.number <= v.Number {
				delete(p.open, v.StoryID)
			}
			p.keepTransition(v, unknown)
			continue
		}
		stage, known := p.stage(v.Stage)
		p.open[v.StoryID] = openVisit{
			v.Number, milli(v.From), milli(v.BlockedSince), milli(v.MergeFailedSince), milli(v.EventAt),
			stage, v.Source == FromBoard, known && v.Stage != "",
		}
	}
}

// stage returns the index of a stage, false if there are too many.
func (p *ProjectVisits) stage(name string) (index uint8, ok bool) {
	i := slices.Index(p.stages, name)
	if i < 0 {
		if len(p.stages) >= maxStageNames {
			return 0, false
		}
		i = len(p.stages)
		p.stages = append(p.stages, name)
	}
	return uint8(i), true
}

func milli(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func fromMilli(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

// Times returns the stages with the known times of their items. It shares unchanged stages.
func (p *ProjectVisits) Times(stages []Stage) []Stage {
	dated := make([]Stage, len(stages))
	for i, stage := range stages {
		dated[i] = stage
		copied := false
		for j, item := range stage.Items {
			last, ok := p.open[item.StoryID]
			if !ok || !last.known || p.stages[last.stage] != stage.Name {
				continue
			}
			item.Since, item.BlockedSince = fromMilli(last.from), fromMilli(last.blocked)
			item.MergeFailedSince = fromMilli(last.mergeFailed)
			if item == stage.Items[j] {
				continue
			}
			if !copied {
				dated[i].Items, copied = slices.Clone(stage.Items), true
			}
			dated[i].Items[j] = item
		}
	}
	return dated
}

// Differing returns what a pipeline, asked for at asked, shows otherwise than these visits. complete means that a
// story missing from it is not on the board. settled is false if newer events contradict some of it, which is left
// out: then the pipeline must be observed again.
func (p *ProjectVisits) Differing(stages []Stage, complete bool, asked time.Time) (seen []Sighting, settled bool) {
	settled = true
	shown := map[string]bool{}
	compare := func(s Sighting) {
		last, open := p.open[s.StoryID]
		if !open && (len(p.open) >= maxOpenVisits || len(p.stages) >= maxStageNames && !slices.Contains(p.stages, s.Stage)) {
			return // it would be refused
		}
		same := open == (s.Stage != "") && (!open || p.agrees(last, s))
		switch {
		case open && last.eventAtMS > asked.UnixMilli():
			settled = settled && same
		case !same || open && last.fromBoard && s.Since.UnixMilli() > 0 && s.Since.UnixMilli() < last.from:
			seen = append(seen, s)
		}
	}
	for _, stage := range stages {
		for _, item := range stage.Items {
			if !shown[item.StoryID] && canVisit(item.StoryID) && canVisit(stage.Name) {
				shown[item.StoryID] = true
				name := strings.ReplaceAll(item.StoryName, "\x00", "")
				compare(Sighting{item.StoryID, name, stage.Name, item.Since, item.Blocked != "", item.MergeFailure != ""})
			}
		}
	}
	if complete {
		for id := range p.open {
			if !shown[id] {
				compare(Sighting{StoryID: id})
			}
		}
	}
	return seen, settled
}

func (p *ProjectVisits) agrees(last openVisit, s Sighting) bool {
	return last.known && p.stages[last.stage] == s.Stage &&
		s.Blocked == (last.blocked != 0) && s.MergeFailed == (last.mergeFailed != 0)
}
