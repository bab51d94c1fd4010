package domain

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
)

// ProjectVisits are the visits of a project's stories as pages need them. They do not change; With returns others.
type ProjectVisits struct {
	Past Past
	// Whole means that these are all that are stored, not only the newest.
	Whole   bool
	Count   int
	stages  []string          // at most maxStageNames; visits have indexes into it
	open    map[string]*Visit // by story id
	stories []visitedStory    // by id
}

type visitedStory struct {
	id     string
	visits []storyVisit // by number
}

// storyVisit is a Visit, kept small since there are many, in Unix milliseconds.
type storyVisit struct {
	number, from, to int64 // from is 0 if unknown, to while it lasts
	stage, next      uint8 // next is 0 if the story left the board, otherwise the index of its name plus 1
	git              bool  // only git knows when it began
}

// VisitEnd is what is needed of a visit that has ended.
type VisitEnd struct {
	StoryID     string
	Number      int64
	Stage, Next string // Next is "" when the story left the board
	From, To    int64  // Unix milliseconds; From is 0 if unknown
	Git         bool
}

// NewProjectVisits returns the visits of one project from its open ones and those that have ended, each story's
// together.
func NewProjectVisits(open []Visit, ended []VisitEnd) *ProjectVisits {
	p := &ProjectVisits{open: map[string]*Visit{}}
	p.apply(open, ended)
	return p
}

// With returns the visits after changes, each story's in the order of their numbers.
func (p *ProjectVisits) With(changed []Visit) *ProjectVisits {
	next := *p
	next.stages, next.open = slices.Clone(p.stages), maps.Clone(p.open)
	next.apply(changed, nil)
	return &next
}

// apply adds visits, or replaces earlier states of them.
func (p *ProjectVisits) apply(visits []Visit, ended []VisitEnd) {
	touched := map[string][]storyVisit{}
	own := func(id string) []storyVisit {
		if visits, isTouched := touched[id]; isTouched {
			return visits
		}
		return slices.Clone(p.visitsOf(id))
	}
	put := func(e VisitEnd) {
		stage, known := p.stage(e.Stage)
		v := storyVisit{number: e.Number, from: e.From, to: e.To, stage: stage, git: e.Git}
		if e.Next != "" {
			next, knownToo := p.stage(e.Next)
			v.next, known = next+1, known && knownToo
		}
		if !known {
			return
		}
		own := own(e.StoryID)
		at, replaces := slices.BinarySearchFunc(own, v.number, func(v storyVisit, number int64) int {
			return cmp.Compare(v.number, number)
		})
		if replaces {
			own[at] = v
		} else {
			own = slices.Insert(own, at, v)
			p.Count++
		}
		touched[e.StoryID] = own
	}
	for _, e := range ended {
		put(e)
	}
	for i := range visits {
		v := &visits[i]
		if v.Source == Undone {
			undone := func(own storyVisit) bool { return own.number == v.Number }
			own := own(v.StoryID)
			touched[v.StoryID] = slices.DeleteFunc(own, undone)
			p.Count -= len(own) - len(touched[v.StoryID])
			continue
		}
		put(VisitEnd{v.StoryID, v.Number, v.Stage, v.Next, milli(v.From), milli(v.To), v.Source == FromGit})
		if v.To.IsZero() {
			open := *v
			p.open[v.StoryID] = &open
		} else if last := p.open[v.StoryID]; last != nil && last.Number <= v.Number {
			delete(p.open, v.StoryID)
		}
	}
	merged := make([]visitedStory, 0, len(p.stories)+len(touched))
	for _, story := range p.stories {
		if _, replaced := touched[story.id]; !replaced {
			merged = append(merged, story)
		}
	}
	kept := len(merged)
	for id, own := range touched {
		merged = append(merged, visitedStory{id, own})
	}
	byID := func(a, b visitedStory) int { return strings.Compare(a.id, b.id) }
	slices.SortFunc(merged[kept:], byID)
	p.stories = mergeSorted(merged[:kept:kept], merged[kept:], byID)
}

func (p *ProjectVisits) visitsOf(id string) []storyVisit {
	at, found := slices.BinarySearchFunc(p.stories, id, func(s visitedStory, id string) int {
		return strings.Compare(s.id, id)
	})
	if !found {
		return nil
	}
	return p.stories[at].visits
}

func mergeSorted[T any](a, b []T, compare func(T, T) int) []T {
	merged := make([]T, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if compare(a[0], b[0]) <= 0 {
			merged, a = append(merged, a[0]), a[1:]
		} else {
			merged, b = append(merged, b[0]), b[1:]
		}
	}
	return append(append(merged, a...), b...)
}

func milli(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
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
			item.SinceAtLeast = item.SinceAtLeast && last.IsSince(item.Since)
			if item.Since == last.From && item.BlockedSince == last.BlockedSince &&
				item.MergeFailedSince == last.MergeFailedSince && item.SinceAtLeast == stage.Items[j].SinceAtLeast {
				continue
			}
			item.Since, item.BlockedSince, item.MergeFailedSince = last.From, last.BlockedSince, last.MergeFailedSince
			if !copied {
				dated[i].Items, copied = slices.Clone(stage.Items), true
			}
			dated[i].Items[j] = item
		}
	}
	return dated
}

// Differing returns where a pipeline, requested at asked, differs from these visits, ignoring the work of a checkout. A
// story missing from one that was not cut is not on the board. settled is false if newer events contradict some of it,
// which is left out: then the pipeline must be observed again. After finding more than limit it stops.
func (p *ProjectVisits) Differing(answer *PipelineAnswer, asked time.Time, limit int) (seen []Sighting, settled bool) {
	settled = true
	shown := map[string]bool{}
	for _, id := range answer.CheckedOut {
		shown[id] = true
	}
	compare := func(s Sighting) {
		last := p.open[s.StoryID]
		switch same := last.agrees(s); {
		case last == nil && p.isFull(s.Stage): // it would be refused
		case last != nil && last.EventAt.After(asked):
			settled = settled && same
		case !same || last.isOlder(s):
			seen = append(seen, s)
		}
	}
	for _, stage := range answer.Stages {
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
	if answer.Note == "" {
		for id := range p.open {
			if len(seen) <= limit && !shown[id] {
				compare(Sighting{StoryID: id})
			}
		}
	}
	return seen, settled
}

// isFull reports whether a visit of a story that is not on the board would be refused.
func (p *ProjectVisits) isFull(stage string) bool {
	return len(p.open) >= maxOpenVisits || len(p.stages) >= maxStageNames && !slices.Contains(p.stages, stage)
}

// eachTransition calls do with the visits that have ended since a time by a move to another stage, if it is known when
// they began.
func (p *ProjectVisits) eachTransition(since time.Time, do func(storyVisit)) {
	oldest := since.UnixMilli()
	for _, story := range p.stories {
		for _, v := range story.visits {
			if v.next > 0 && v.from > 0 && v.to >= oldest {
				do(v)
			}
		}
	}
}

// LastMove returns when a story last went from one stage to another, zero if no move is known.
func (p *ProjectVisits) LastMove() (at time.Time) {
	var last int64
	for _, story := range p.stories {
		for _, v := range story.visits {
			if v.next > 0 {
				last = max(last, v.to)
			}
		}
	}
	if last > 0 {
		at = time.UnixMilli(last)
	}
	return at
}

// Board returns the stages that the visits mention, with what is in them.
func (p *ProjectVisits) Board() []Stage {
	stages := VisitedStages(p.stages)
	for _, id := range slices.Sorted(maps.Keys(p.open)) {
		i := slices.IndexFunc(stages, func(s Stage) bool { return s.Name == p.open[id].Stage })
		if i >= 0 {
			stages[i].Items = append(stages[i].Items, Item{StoryID: id})
		}
	}
	return stages
}
