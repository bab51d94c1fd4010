package domain

import (
	"math"
	"slices"
	"time"
)

// Move is what a commit did to a story.
type Move struct {
	StoryID string
	From    string // "" for its first appearance
	To      string
	At      time.Time
	Author  string
}

// Past is what is known from git about a project's past.
type Past struct {
	ID    string    // of the history that was read, "" for none
	Since time.Time // its first move, zero if there is none
	Live  time.Time // since when the project has been followed: only git knows anything older
	// Latest are the newest of its moves, oldest first.
	Latest []Move
}

const (
	// PastDays is how many days of history are read from git.
	PastDays = 180
	// MaxMoves is how many moves of a project are read, from the newest.
	MaxMoves = 50_000
	// LatestMoves is how many of them are also kept separately.
	LatestMoves = 20
	// MergedVisits is how many of a story's newest visits are read for MergeMoves.
	MergedVisits = 200
	// sameMove is how much later than the stream's a move in git may be to be the same, whatever came in between.
	sameMove = time.Hour
)

// MovesByStory returns the moves that visits can be made from, each story's in order of time. None is older than
// oldest; anything dated after now counts as now.
func MovesByStory(moves []Move, oldest, now time.Time) map[string][]Move {
	byStory := map[string][]Move{}
	for _, m := range moves {
		isKept := m.StoryID != "" && m.To != "" && canVisit(m.StoryID) && canVisit(m.From) && canVisit(m.To)
		if isKept && !m.At.Before(oldest) {
			if m.At.After(now) {
				m.At = now
			}
			byStory[m.StoryID] = append(byStory[m.StoryID], m)
		}
	}
	for id, list := range byStory {
		slices.SortStableFunc(list, func(a, b Move) int { return a.At.Compare(b.At) })
		byStory[id] = list[max(0, len(list)-MergedVisits/2):]
	}
	return byStory
}

// MergeMoves returns the visits of a story, from its newest stored ones, after its moves from git, oldest first, have
// replaced those from git before. What the stream knows takes precedence, then git, then what only pipelines have
// shown. A story that is on no board leaves its last stage as soon as it enters it.
func (c *VisitCounts) MergeMoves(key StoryKey, stored []Visit, moves []Move) []Visit {
	live := withoutGit(stored)
	m := merger{moves: gitOnly(live, slices.DeleteFunc(slices.Clone(moves), func(m Move) bool {
		return !c.allow(m.To) || m.From != "" && !c.allow(m.From)
	}))}
	if len(live) == 0 {
		m.fill(time.Time{}, time.Time{})
		if last := m.last(); last != nil {
			last.To = last.From
		}
	}
	for i := 0; i < len(live); {
		end := i // up to here the stream does not know how the story came from one visit to the next
		for end+1 < len(live) && !joins(live[end], live[end+1]) {
			end++
		}
		if cut := i == 0 && (len(stored) >= MergedVisits || live[0].begunByEvent()); cut { // there were older visits
			m.visits = append(m.visits, live[:end+1]...)
		} else {
			var since time.Time
			if last := m.last(); last != nil {
				since = last.From
			}
			m.fill(since, live[end].To)
			m.show(live[i : end+1])
		}
		for i = end + 1; i < len(live) && joins(live[i-1], live[i]); i++ {
			m.visits = append(m.visits, live[i])
		}
	}
	m.number(key)
	return m.visits
}

func (v *Visit) begunByEvent() bool { return v.Source == FromEvent && !v.From.IsZero() }

// joins reports whether the stream knows the move from one visit to the next.
func joins(v, next Visit) bool {
	return next.begunByEvent() && v.Next == next.Stage && v.To.Equal(next.From)
}

// gitOnly returns the moves in git that the stream does not know. Each of the stream's moves takes the latest one in
// git into the same stage that was made before it, or up to an hour after it, or later if the stream knows of no other
// move. A move in git after which the story moved on before the stream's is a different one.
func gitOnly(live []Visit, moves []Move) []Move {
	for i := 1; i < len(live); i++ {
		if !joins(live[i-1], live[i]) {
			continue
		}
		at, next := live[i].From, time.Time{} // the stream's next move
		if j := slices.IndexFunc(live[i+1:], func(v Visit) bool { return v.begunByEvent() }); j >= 0 {
			next = live[i+1+j].From
		}
		for k, m := range slices.Backward(moves) {
			isEarly := !m.At.After(at.Add(sameMove))
			if m.To == live[i].Stage && (isEarly || next.IsZero() || m.At.Before(next)) {
				moves = slices.Delete(moves, k, k+1)
				break
			} else if m.To != live[i].Stage && !m.At.After(at) {
				break
			}
		}
	}
	return moves
}

// withoutGit returns a story's visits as they were before git's moves were merged into them.
func withoutGit(stored []Visit) (live []Visit) {
	stored = slices.DeleteFunc(slices.Clone(stored), func(v Visit) bool { return v.Source == Undone })
	for i, v := range stored {
		if v.Source == FromGit {
			last := i == len(stored)-1
			switch {
			case !last && joins(v, stored[i+1]):
				v.From, v.Source = time.Time{}, FromEvent
			case last && !v.To.Equal(v.From),
				!last && stored[i+1].Source == FromBoard && v.Next == stored[i+1].Stage && v.To.Equal(stored[i+1].From):
				v.From, v.Source = time.UnixMilli(v.Number), FromBoard
			default:
				continue
			}
		}
		live = append(live, v)
	}
	return live
}

// merger builds the visits of a story in order.
type merger struct {
	moves  []Move // unknown to the stream
	visits []Visit
}

func (m *merger) last() *Visit {
	if len(m.visits) == 0 {
		return nil
	}
	return &m.visits[len(m.visits)-1]
}

// end ends the last visit, if any, at a time; next is "" if it is unknown where the story went.
func (m *merger) end(at time.Time, next string) {
	if last := m.last(); last != nil {
		last.To, last.Next = at, next
		last.Blocked = min(last.Blocked, max(0, at.Sub(last.From)))
		last.BlockedSince, last.MergeFailedSince = time.Time{}, time.Time{}
	}
}

// fill adds git's moves after since, and before until unless that is zero.
func (m *merger) fill(since, until time.Time) {
	for _, g := range m.moves {
		if !g.At.After(since) || !until.IsZero() && !g.At.Before(until) {
			continue
		}
		last := m.last()
		follows := last != nil && last.Stage == g.From
		switch {
		case last != nil && last.Stage == g.To:
			continue
		case last != nil && last.Source != FromGit && !follows: // a late commit of what the stream knows
			continue
		case follows || last == nil && g.From == "":
			m.end(g.At, g.To)
		default: // a move is missing
			m.end(g.At, "")
			if g.From != "" {
				m.visits = append(m.visits, Visit{Stage: g.From, To: g.At, Next: g.To, Source: FromGit})
			}
		}
		m.visits = append(m.visits, Visit{Stage: g.To, From: g.At, Source: FromGit})
	}
}

// show adds visits whose beginning only the pipeline has shown, or that began before the stream, unless git knows more
// about them.
func (m *merger) show(visits []Visit) {
	for i, v := range visits {
		last := m.last()
		known := last != nil && last.Source == FromGit && last.To.IsZero()
		switch {
		case known && i < len(visits)-1 && !v.From.After(last.From):
			continue
		case known && (last.Stage == v.Stage || v.Stage == ""):
			v.Stage, v.From, v.Source = last.Stage, last.From, FromGit
			m.visits = m.visits[:len(m.visits)-1]
		case known && v.From.IsZero():
			m.end(v.To, "")
		case known:
			v.From = Later(v.From, last.From)
			m.end(v.From, v.Stage)
		}
		m.visits = append(m.visits, v)
	}
}

// number numbers new visits in order.
func (m *merger) number(key StoryKey) {
	next := int64(math.MaxInt64)
	for i := len(m.visits) - 1; i >= 0; i-- {
		v := &m.visits[i]
		if v.StoryID == "" {
			at := v.From
			if at.IsZero() {
				at = v.To.Add(-time.Millisecond)
			}
			v.Project, v.StoryID, v.Number = key.Project, key.ID, min(at.UnixMilli(), next-1)
		}
		next = v.Number
	}
	for i := 1; i < len(m.visits); i++ {
		m.visits[i].Number = max(m.visits[i].Number, m.visits[i-1].Number+1)
	}
}
