package domain

import (
	"hash/fnv"
	"maps"
	"slices"
	"time"
)

const (
	// MaxTransitions is how many of a project's newest transitions are kept in memory, enough to compute what is usual.
	// Older ones are only counted, by day and stages.
	MaxTransitions = 4000
	// maxOlder is the maximum number of counters by day and pair of stages: a project with more stages keeps fewer days.
	maxOlder = 10_000
	// TransitionMemory is how long transitions count for what is usual in a stage.
	TransitionMemory = 90 * 24 * time.Hour
)

// VisitEnd is the end of a visit: what is needed of it once it has ended.
type VisitEnd struct {
	Number      int64
	Story       uint32 // StoryHash of its id
	Stage, Next string // Next is "" when the story left the board
	From, To    int64  // Unix milliseconds; From is 0 if unknown
}

func endOf(v *Visit) VisitEnd {
	e := VisitEnd{Number: v.Number, Story: StoryHash([]byte(v.StoryID)), Stage: v.Stage, Next: v.Next}
	e.To = v.To.UnixMilli()
	if !v.From.IsZero() {
		e.From = v.From.UnixMilli()
	}
	return e
}

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

// StoryHash tells apart the stories of transitions that have the same number.
func StoryHash(id []byte) uint32 {
	h := fnv.New32a()
	_, _ = h.Write(id)
	return h.Sum32()
}

// LastMove returns when a story last went from one stage to another, zero if no move is known.
func (p *ProjectVisits) LastMove() time.Time {
	if n := len(p.transitions); n > 0 {
		return time.UnixMilli(p.transitions[n-1].atMS)
	}
	return time.Time{}
}

// changeTransition adds the transition that ended a visit, in place of an earlier one of the same visit.
func (p *ProjectVisits) changeTransition(e VisitEnd) {
	p.transitions = slices.DeleteFunc(p.transitions, func(t transition) bool {
		return t.number == e.Number && t.story == e.Story
	})
	p.addTransition(e)
}

// addTransition adds the transition that ended a visit, unless the story left the board.
func (p *ProjectVisits) addTransition(e VisitEnd) {
	from, known := p.stage(e.Stage)
	to, knownToo := p.stage(e.Next)
	if e.Next == "" || !known || !knownToo {
		return
	}
	t := transition{atMS: e.To, visitedMS: -1, number: e.Number, story: e.Story, from: from, to: to}
	if e.From != 0 {
		t.visitedMS = e.To - e.From
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
