package domain

import (
	"slices"
	"time"
)

const (
	// maxStageNames is how many stages a history distinguishes. Pipelines have far fewer; it limits what a hostile feed can cost.
	maxStageNames = 100
	// maxOpenStays is how many stories a history follows, as many as a pipeline may have.
	maxOpenStays = 20_000
	// maxMoves is how many of the newest moves a history keeps, enough to compute what is usual. Older ones are only counted, by day
	// and stages.
	maxMoves = 4000
	// maxOlder is the maximum number of counters by day and pair of stages: a history with more stages keeps fewer days.
	maxOlder = 10_000
	// moveMemory is how long moves count for what is usual in a stage.
	moveMemory = 90 * 24 * time.Hour
)

// StageHistory keeps where the stories of one project are and have been, derived from the stream and from its pipelines. The zero
// value is empty.
type StageHistory struct {
	names   []string // of stages; the other fields have indexes into it
	moves   []move   // in the order in which they became known
	older   map[olderMoves]uint32
	open    map[string]*openStay // by story id
	saved   map[stayKey]Stay     // changes since TakeChanges
	dropped map[stayKey]bool
	version uint64
	limits  map[string]stuckLimit
}

type stayKey struct {
	storyID string
	number  int64
}

type openStay struct {
	Stay
	before  *Stay     // the stay before, if only a pipeline has shown that it ended
	move    *move     // the move into this stage, if only a pipeline has shown it
	eventAt time.Time // when the last event about the story was added
}

// Add applies the project's next event. now is the current time.
func (h *StageHistory) Add(e Event, now time.Time) {
	if e.Type != StageTransition && e.Type != StoryBlocked && e.Type != MergeFailure {
		return
	}
	d, at := e.Details(), e.At
	if d.StoryID == "" {
		return
	}
	if e.Type == StageTransition {
		h.moved(e.Project, d, at, now)
		return
	}
	stay := h.open[d.StoryID]
	if stay == nil {
		if stay = h.begin(Stay{Project: e.Project, StoryID: d.StoryID, Shown: true}, at); stay == nil {
			return
		}
	}
	since := &stay.BlockedSince
	if e.Type == MergeFailure {
		since = &stay.MergeFailedSince
	}
	if since.IsZero() {
		*since = at
	}
	stay.eventAt = now
	h.change(stay.Stay)
}

func (h *StageHistory) moved(project string, d EventDetails, at, now time.Time) {
	stay := h.open[d.StoryID]
	made, ok := h.newMove(d.StoryID, d.FromStage, d.ToStage, time.Time{}, at)
	if !ok {
		return
	}
	if stay != nil && stay.Shown && stay.Stage == d.ToStage { // a pipeline has shown it already
		if before := stay.before; before != nil {
			before.To = at
			h.change(*before)
			made, _ = h.newMove(d.StoryID, before.Stage, d.ToStage, before.From, at)
		}
		if stay.move != nil {
			h.correct(*stay.move, &made)
		} else {
			h.remember(made)
		}
		stay.From, stay.Shown, stay.before, stay.move, stay.eventAt = at, false, nil, nil, now
		h.change(stay.Stay)
		return
	}
	if stay != nil && stay.Shown && stay.Stage != d.FromStage {
		stay = h.undo(stay)
	}
	next := Stay{Project: project, StoryID: d.StoryID, Stage: d.ToStage, From: at}
	switch {
	case stay == nil || stay.Stage != d.FromStage:
		if stay != nil {
			h.end(stay, at, "")
		}
		before := Stay{Project: project, StoryID: d.StoryID, Number: at.UnixMilli() - 1, Stage: d.FromStage, To: at, Next: d.ToStage}
		h.change(before)
	default:
		made, _ = h.newMove(d.StoryID, d.FromStage, d.ToStage, stay.From, at)
		h.end(stay, at, d.ToStage)
	}
	if stay != nil {
		next.BlockedSince, next.MergeFailedSince, next.Number = stay.BlockedSince, stay.MergeFailedSince, stay.Number
	}
	h.remember(made)
	if stay = h.begin(next, at); stay != nil {
		stay.eventAt = now
	}
}

// undo removes a stay that only a pipeline has shown. It returns the stay before it, nil if unknown.
func (h *StageHistory) undo(stay *openStay) *openStay {
	delete(h.open, stay.StoryID)
	if stay.move != nil {
		h.correct(*stay.move, nil)
	}
	h.drop(stayKey{stay.StoryID, stay.Number})
	if stay.before == nil {
		if stay.BlockedSince.IsZero() && stay.MergeFailedSince.IsZero() {
			return nil
		}
		return &openStay{Stay: Stay{
			Project: stay.Project, StoryID: stay.StoryID, Number: stay.Number, To: stay.From,
			BlockedSince: stay.BlockedSince, MergeFailedSince: stay.MergeFailedSince,
		}}
	}
	before := &openStay{Stay: *stay.before}
	before.To, before.Next = time.Time{}, ""
	before.BlockedSince, before.MergeFailedSince = stay.BlockedSince, stay.MergeFailedSince
	h.open[stay.StoryID] = before
	return before
}

// begin opens a stay that begins at at. It returns nil when there are too many.
func (h *StageHistory) begin(s Stay, at time.Time) *openStay {
	if h.open == nil {
		h.open = map[string]*openStay{}
	}
	if _, known := h.open[s.StoryID]; !known && len(h.open) >= maxOpenStays {
		return nil
	}
	s.Number = max(s.Number+1, at.UnixMilli())
	stay := &openStay{Stay: s}
	h.open[s.StoryID] = stay
	h.change(s)
	return stay
}

// end closes a stay.
func (h *StageHistory) end(stay *openStay, at time.Time, next string) {
	delete(h.open, stay.StoryID)
	if stay.Stage == "" {
		return
	}
	ended := stay.Stay
	ended.To, ended.Next = later(at, stay.From), next
	if !ended.BlockedSince.IsZero() {
		ended.Blocked += max(0, ended.To.Sub(later(ended.From, ended.BlockedSince)))
		ended.BlockedSince = time.Time{}
	}
	ended.MergeFailedSince = time.Time{}
	h.change(ended)
}

func (h *StageHistory) index(name string) uint8 {
	i := slices.Index(h.names, name)
	if i < 0 {
		i = len(h.names)
		if i < maxStageNames {
			h.names = append(h.names, name)
		}
	}
	return uint8(i)
}

// Version increases with every change.
func (h *StageHistory) Version() uint64 { return h.version }

// Forget removes the moves that no longer count at now.
func (h *StageHistory) Forget(now time.Time) {
	from := now.Add(-moveMemory).UnixMilli()
	h.moves = slices.DeleteFunc(h.moves, func(m move) bool { return m.atMS < from })
	h.forgetOlder(dayNumber(now))
	h.limits = nil
}
