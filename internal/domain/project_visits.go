package domain

import (
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// ProjectVisits are the visits of a project's stories as far as pages need them: the open ones and the newest
// transitions. They do not change; With returns others.
type ProjectVisits struct {
	Past        Past
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

// NewProjectVisits returns the visits of one project from its open ones, the newest that have ended in the order of
// their ends, and counts of those before.
func NewProjectVisits(open []Visit, ended []VisitEnd, older []TransitionCount) *ProjectVisits {
	p := &ProjectVisits{open: map[string]*Visit{}, transitions: make([]transition, 0, len(ended))}
	p.apply(open)
	for _, e := range ended {
		p.addTransition(e)
	}
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
		Past: p.Past, stages: slices.Clone(p.stages), open: maps.Clone(p.open),
		transitions: slices.Clone(p.transitions), older: maps.Clone(p.older),
	}
	next.apply(changed)
	return next
}

// apply adds visits, or replaces earlier states of them.
func (p *ProjectVisits) apply(visits []Visit) {
	for _, v := range visits {
		if !v.To.IsZero() {
			if last := p.open[v.StoryID]; last != nil && last.Number <= v.Number {
				delete(p.open, v.StoryID)
			}
			p.changeTransition(endOf(&v))
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
// out: then the pipeline must be observed again. Once it has found more than limit it looks no further.
func (p *ProjectVisits) Differing(
	stages []Stage, complete bool, asked time.Time, limit int,
) (seen []Sighting, settled bool) {
	settled = true
	shown := map[string]bool{}
	compare := func(s Sighting) {
		last := p.open[s.StoryID]
		isFull := len(p.open) >= maxOpenVisits || len(p.stages) >= maxStageNames && !slices.Contains(p.stages, s.Stage)
		if last == nil && isFull {
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
			if len(seen) > limit {
				return seen, settled
			}
			if !shown[item.StoryID] && canVisit(item.StoryID) && canVisit(stage.Name) {
				shown[item.StoryID] = true
				name := strings.ReplaceAll(item.StoryName, "\x00", "")
				compare(Sighting{item.StoryID, name, stage.Name, item.Since, item.Blocked != "", item.MergeFailure != ""})
			}
		}
	}
	if complete {
		for id := range p.open {
			if len(seen) <= limit && !shown[id] {
				compare(Sighting{StoryID: id})
			}
		}
	}
	return seen, settled
}

const (
	// StuckByDefault is the limit when too few stories have left the stage.
	StuckByDefault = 24 * time.Hour
	stuckAtLeast   = 4 * time.Hour
	stuckNeeds     = 10 // how many stories must have left it to compute one
)

// StuckLimit returns how long a story may be in a stage before it needs attention: the 85th percentile, by nearest
// rank, of the stories that left it in the last 90 days.
func (p *ProjectVisits) StuckLimit(stage string, now time.Time) time.Duration {
	index := slices.Index(p.stages, stage)
	oldest := now.Add(-TransitionMemory).UnixMilli()
	var took []int64
	for _, t := range p.transitions {
		if int(t.from) == index && t.visitedMS >= 0 && t.atMS >= oldest {
			took = append(took, t.visitedMS)
		}
	}
	if len(took) < stuckNeeds {
		return StuckByDefault
	}
	slices.Sort(took)
	rank := int(math.Ceil(0.85 * float64(len(took))))
	return max(stuckAtLeast, time.Duration(took[rank-1])*time.Millisecond)
}
