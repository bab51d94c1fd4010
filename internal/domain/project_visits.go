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
	stages      []string          // at most maxStageNames; transitions have indexes into it
	open        map[string]*Visit // by story id
	transitions []transition      // in order
	older       map[olderTransitions]int
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
	p := &ProjectVisits{open: map[string]*Visit{}}
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
			if last := p.open[v.StoryID]; last != nil && last.Number <= v.Number {
				delete(p.open, v.StoryID)
			}
			p.keepTransition(v, unknown)
			continue
		}
		p.stage(v.Stage)
		open := v // v itself would be allocated for ended ones, too
		p.open[v.StoryID] = &open
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

// Times returns the stages with the known times of their items. It shares unchanged stages.
func (p *ProjectVisits) Times(stages []Stage) []Stage {
	dated := make([]Stage, len(stages))
	for i, stage := range stages {
		dated[i] = stage
		copied := false
		for j, item := range stage.Items {
			last := p.open[item.StoryID]
			if last == nil || last.Stage != stage.Name {
				continue
			}
			item.Since, item.BlockedSince, item.MergeFailedSince = last.From, last.BlockedSince, last.MergeFailedSince
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
		last := p.open[s.StoryID]
		if last == nil && (len(p.open) >= maxOpenVisits || len(p.stages) >= maxStageNames && !slices.Contains(p.stages, s.Stage)) {
			return // it would be refused
		}
		same := last.agrees(s)
		switch {
		case last != nil && last.EventAt.After(asked):
			settled = settled && same
		case !same || last != nil && last.Source == FromBoard && s.Since.UnixMilli() > 0 && s.Since.Before(last.From):
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
