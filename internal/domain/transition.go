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
		p.countOlder(p.transitions[:MaxTransitions/10])
		p.transitions = slices.Delete(p.transitions, 0, MaxTransitions/10)
	}
}

// countOlder counts transitions that are about to be removed, for charts.
func (p *ProjectVisits) countOlder(transitions []transition) {
	for _, t := range transitions {
		p.addOlder(olderTransitions{dayNumber(time.UnixMilli(t.atMS)), t.from, t.to}, 1)
	}
	newest := dayNumber(time.UnixMilli(transitions[len(transitions)-1].atMS))
	// No chart needs them.
	maps.DeleteFunc(p.older, func(o olderTransitions, _ int) bool { return o.day <= newest-2*ChartDays })
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
func (p *ProjectVisits) chartOlder(c *Charts, start time.Time, finishes [][]bool) {
	first := dayNumber(start)
	for o, n := range p.older {
		if !finishes[o.from][o.to] {
			continue
		}
		switch at := int(o.day - first); {
		case at >= 0:
			c.Days[min(at, len(c.Days)-1)].Finished += n
		case at >= -ChartDays:
			c.Before += n
		}
	}
}
