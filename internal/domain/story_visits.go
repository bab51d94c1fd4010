package domain

import (
	"slices"
	"time"
)

// NewestVisits is how many of a story's newest visits are needed to apply an event or a sighting.
const NewestVisits = 3

// storyVisits are the newest visits of a story, in order, while events and sightings are applied to them.
type storyVisits struct {
	key    StoryKey
	counts *VisitCounts // of its project
	visits []Visit
	stored []Visit // as they were
	free   int64   // the number of a visit that was undone, for the next one
}

// open returns the story's current visit, nil if it is not on the board.
func (s *storyVisits) open() *Visit {
	if n := len(s.visits); n > 0 && s.visits[n-1].To.IsZero() {
		return &s.visits[n-1]
	}
	return nil
}

// shownBefore returns the visit before the open one if no event reported the move between them, otherwise nil.
func (s *storyVisits) shownBefore() *Visit {
	n := len(s.visits)
	if n < 2 || s.visits[n-1].Source == FromEvent || s.visits[n-1].Stage == "" ||
		s.visits[n-2].Next != s.visits[n-1].Stage {
		return nil
	}
	return &s.visits[n-2]
}

func (s *storyVisits) add(e Event) {
	at := e.At
	if !e.ReceivedAt.IsZero() && at.After(e.ReceivedAt.Add(MaxClockSkew)) {
		at = e.ReceivedAt
	}
	if d := e.Details(); e.Type == StageTransition {
		s.move(d.FromStage, d.ToStage, at)
	} else if s.open() == nil {
		s.begin(Visit{Source: FromBoard}, at) // its stage is unknown
	}
	open := s.open()
	if open == nil {
		return
	}
	open.EventAt = Later(open.EventAt, e.ReceivedAt)
	switch {
	case e.Type == StoryBlocked && open.BlockedSince.IsZero():
		open.BlockedSince = at
	case e.Type == MergeFailure && open.MergeFailedSince.IsZero():
		open.MergeFailedSince = at
	}
}

// move applies a move reported by an event. A pipeline, or git, may have shown it already.
func (s *storyVisits) move(from, to string, at time.Time) {
	if !s.counts.allow(from) || !s.counts.allow(to) {
		return
	}
	open := s.open()
	defer s.rejoin()
	if open != nil && open.Stage == to && open.Source != FromEvent {
		s.confirm(from, at)
		return
	}
	if open != nil && open.Source == FromBoard && open.Stage != from {
		open = s.undo()
	}
	next := Visit{Stage: to, From: at, Source: FromEvent}
	if open != nil {
		next.BlockedSince, next.MergeFailedSince = open.BlockedSince, open.MergeFailedSince
	}
	switch {
	case open != nil && (open.Stage == from || open.Stage == ""):
		open.Stage = from
		s.end(at, to)
	case open != nil:
		s.end(at, "") // a move is missing
		fallthrough
	default:
		s.append(Visit{Stage: from, To: at, Next: to, Source: FromEvent}, at.Add(-time.Millisecond))
	}
	s.begin(next, at)
}

// confirm corrects the open visit, which a pipeline has shown, by the event that reports its beginning.
func (s *storyVisits) confirm(from string, at time.Time) {
	open := s.open()
	if before := s.shownBefore(); before != nil {
		var blocked time.Time
		if !open.BlockedSince.After(before.To) {
			blocked = open.BlockedSince
		}
		before.reopen(blocked)
		before.leave(at, open.Stage)
	} else { // the pipeline was the first to show the story
		arrived := Visit{
			Project: open.Project, StoryID: open.StoryID, Number: open.Number,
			Stage: from, To: at, Next: open.Stage, Source: FromEvent,
		}
		open.Number++
		s.visits = slices.Insert(s.visits, len(s.visits)-1, arrived)
		open = s.open()
	}
	open.From, open.Source = at, FromEvent
}

// cameAfter reports whether the story was still elsewhere at a time.
func (s *storyVisits) cameAfter(at time.Time) bool {
	n := len(s.visits)
	return n > 1 && s.visits[n-2].To.After(at)
}

// undo removes the open visit, which only a pipeline has shown, and returns the one before, with an unknown stage if
// there is none.
func (s *storyVisits) undo() *Visit {
	open := *s.open()
	if s.shownBefore() == nil {
		unknown := s.open()
		unknown.Stage, unknown.From = "", time.Time{}
		return unknown
	}
	s.visits, s.free = s.visits[:len(s.visits)-1], open.Number
	before := &s.visits[len(s.visits)-1]
	before.reopen(open.BlockedSince)
	before.MergeFailedSince, before.EventAt = open.MergeFailedSince, open.EventAt
	return before
}

// rejoin merges the last three visits if the story was back at once: into the last one, so that it is the newest.
func (s *storyVisits) rejoin() {
	n := len(s.visits)
	if n < 3 {
		return
	}
	before, away, back := &s.visits[n-3], &s.visits[n-2], &s.visits[n-1]
	if before.Stage != back.Stage || before.From.IsZero() || !back.To.IsZero() || away.Source != FromEvent ||
		!joins(*before, *away) || !joins(*away, *back) || away.To.Sub(away.From) > returnWindow {
		return
	}
	last := *back
	*back = *before
	back.reopen(last.BlockedSince)
	back.Number, back.MergeFailedSince, back.EventAt = last.Number, last.MergeFailedSince, last.EventAt
	for _, v := range []*Visit{before, away} {
		v.From, v.Blocked, v.Source = v.To, 0, Undone
	}
}

// begin opens a visit at a time, unless the project has too many.
func (s *storyVisits) begin(v Visit, at time.Time) bool {
	if s.counts.Open >= maxOpenVisits {
		return false
	}
	s.counts.Open++
	s.append(v, at)
	return true
}

func (s *storyVisits) end(at time.Time, next string) {
	s.counts.Open--
	s.open().leave(at, next)
}

func (s *storyVisits) append(v Visit, at time.Time) {
	v.Project, v.StoryID, v.Number = s.key.Project, s.key.ID, max(0, at.UnixMilli())
	if n := len(s.visits); n > 0 {
		v.Number = max(v.Number, s.visits[n-1].Number+1)
	}
	if s.free != 0 {
		v.Number, s.free = s.free, 0
	}
	s.visits = append(s.visits, v)
}

// observe applies a sighting in a pipeline requested at asked. It returns false if a newer event contradicts it.
func (s *storyVisits) observe(seen Sighting, asked, now time.Time) (settled bool) {
	open := s.open()
	if n := len(s.visits); n > 0 && s.visits[n-1].EventAt.After(asked) {
		return open.agrees(seen)
	}
	since, began := seen.Since, now
	if since.UnixMilli() <= 0 || since.After(now) {
		since = now
	}
	switch {
	case seen.Stage == "":
		if open != nil {
			s.end(now, "")
		}
		return true
	case !s.counts.allow(seen.Stage):
		return true
	case open == nil:
		began = since // possibly since the beginning of the visit
		if !s.begin(Visit{Stage: seen.Stage, From: since, Source: FromBoard}, since) {
			return true
		}
	case open.Stage == "": // there was an event about the story before its stage was known
		open.Stage, open.From = seen.Stage, since
	case open.Stage != seen.Stage:
		if since.Before(open.From) { // its file has kept its time
			since = now
		}
		next := Visit{
			Stage: seen.Stage, From: since, Source: FromBoard,
			BlockedSince: open.BlockedSince, MergeFailedSince: open.MergeFailedSince, EventAt: open.EventAt,
		}
		s.end(next.From, seen.Stage)
		s.begin(next, next.From)
	case open.Source == FromBoard && since.Before(open.From) && !s.cameAfter(since):
		open.From = since
	}
	s.open().mark(seen, began, now)
	return true
}

// agrees reports whether the sighting shows the same state as the open visit, which is nil for a story that is not on
// the board.
func (v *Visit) agrees(seen Sighting) bool {
	if v == nil || seen.Stage == "" {
		return v == nil && seen.Stage == ""
	}
	return v.Stage == seen.Stage &&
		!v.BlockedSince.IsZero() == seen.Blocked && !v.MergeFailedSince.IsZero() == seen.MergeFailed
}

// isOlder reports whether, by the sighting, a visit that only a board showed began earlier.
func (v *Visit) isOlder(seen Sighting) bool {
	return v != nil && v.Source == FromBoard && seen.Since.UnixMilli() > 0 && seen.Since.Before(v.From)
}

// mark records when a block or a merge failure begins or ends.
func (v *Visit) mark(seen Sighting, began, now time.Time) {
	switch {
	case seen.Blocked && v.BlockedSince.IsZero():
		v.BlockedSince = began
	case !seen.Blocked:
		v.Blocked, v.BlockedSince = v.BlockedFor(now), time.Time{}
	}
	switch {
	case seen.MergeFailed && v.MergeFailedSince.IsZero():
		v.MergeFailedSince = began
	case !seen.MergeFailed:
		v.MergeFailedSince = time.Time{}
	}
}
