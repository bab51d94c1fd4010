package domain

import (
	"hash/fnv"
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
		Past: p.Past, stages: slices.Clone(p.stages), open: maps.Clone(p.open),
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
	// MaxTransitions is how many of a project's newest transitions are kept in memory, enough to compute what is usual.
	// Older ones are only counted, by day and stages.
	MaxTransitions = 4000
	// maxOlder is the maximum number of counters by day and pair of stages: a project with more stages keeps fewer days.
	maxOlder = 10_000
	// TransitionMemory is how long transitions count for what is usual in a stage.
	TransitionMemory = 90 * 24 * time.Hour
)

// transition is the end of a visit by a move to another stage. It is kept small, since there may be many.
type transition struct {
	atMS      int64
	visitedMS int64 // the time in from; negative if unknown
	number    int64 // of the visit
	story     uint32
	from, to  uint8
}

// olderTransitions counts transitions of a day that are not kept individually.
type olderTransitions struct {
	day      int32 // see dayNumber
	from, to uint8
}

func dayNumber(t time.Time) int32 {
	year, month, day := t.Date()
	return int32(time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Unix() / (24 * 60 * 60))
}

func storyHash(id string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id))
	return h.Sum32()
}

// LastMove returns when a story last went from one stage to another, zero if no move is known.
func (p *ProjectVisits) LastMove() time.Time {
	if n := len(p.transitions); n > 0 {
		return time.UnixMilli(p.transitions[n-1].atMS)
	}
	return time.Time{}
}

// keepTransition keeps the transition that ended a visit, unless it left the board. It replaces an earlier one of the
// same visit; unknown means that there is none.
func (p *ProjectVisits) keepTransition(v Visit, unknown bool) {
	t := transition{atMS: v.To.UnixMilli(), visitedMS: -1, number: v.Number, story: storyHash(v.StoryID)}
	for i := len(p.transitions) - 1; i >= 0 && !unknown; i-- {
		if known := p.transitions[i]; known.number == t.number && known.story == t.story {
			p.transitions = slices.Delete(p.transitions, i, i+1)
			break
		}
	}
	from, known := p.stage(v.Stage)
	to, knownToo := p.stage(v.Next)
	if v.Next == "" || !known || !knownToo {
		return
	}
	t.from, t.to = from, to
	if !v.From.IsZero() {
		t.visitedMS = v.To.Sub(v.From).Milliseconds()
	}
	at := len(p.transitions)
	for at > 0 && p.transitions[at-1].atMS > t.atMS {
		at--
	}
	if p.transitions = slices.Insert(p.transitions, at, t); len(p.transitions) > MaxTransitions {
		var newest int32
		for _, t := range p.transitions[:MaxTransitions/10] {
			newest = dayNumber(time.UnixMilli(t.atMS))
			p.addOlder(olderTransitions{newest, t.from, t.to}, 1)
		}
		p.transitions = slices.Delete(p.transitions, 0, MaxTransitions/10)
		// No chart needs older ones.
		maps.DeleteFunc(p.older, func(o olderTransitions, _ int) bool { return o.day <= newest-2*ChartDays })
	}
}

func (p *ProjectVisits) addOlder(o olderTransitions, n int) {
	if p.older == nil {
		p.older = map[olderTransitions]int{}
	}
	if p.older[o] > 0 || len(p.older) < maxOlder {
		p.older[o] += n
	}
}

// chartOlder adds the finished stories among them to charts whose first day is start.
func (p *ProjectVisits) chartOlder(c *Charts, start time.Time, isDone []bool) {
	first := dayNumber(start)
	for o, n := range p.older {
		if isDone[o.from] || !isDone[o.to] {
			continue
		}
		switch at := int(o.day - first); {
		case at >= 0:
			day := &c.Days[min(at, len(c.Days)-1)]
			if day.Finished += n; !day.Day.AddDate(0, 0, 1).After(p.Past.Live) {
				day.FromGit += n
			}
		case at >= -ChartDays:
			c.Before += n
		}
	}
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
