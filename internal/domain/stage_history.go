package domain

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"
)

const (
	// maxStageNames is how many stages a history tells apart: far more than a pipeline has, and few enough for a feed that
	// makes them up.
	maxStageNames = 100
	// maxOpenStays is how many stories a history follows, as many as a pipeline may have.
	maxOpenStays = 20_000
	// maxMoves is how many moves a history remembers, the newest.
	maxMoves = 20_000
	// moveMemory is for how long moves count for what is usual in a stage.
	moveMemory = 90 * 24 * time.Hour
)

// StageHistory is where the stories of one project are and how they got there, by the stream and by what its pipeline
// shows. The zero value knows nothing.
type StageHistory struct {
	names   []string             // of stages; what follows holds indices into it
	moves   []move               // in the order in which they became known
	open    map[string]*openStay // by story id
	saved   map[stayKey]Stay     // what changed since TakeChanges
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
	before *Stay     // the stay that a pipeline showed to be over, until an event tells
	told   time.Time // when the last event about the story was added
}

// move is small, since there may be many.
type move struct {
	atMS     int64
	stayedMS int64 // in from; less than 0 where that is not known
	from, to uint8
}

// Add takes in the project's next event, at the time now.
func (h *StageHistory) Add(e Event, now time.Time) {
	if e.Type != StageTransition && e.Type != StoryBlocked && e.Type != MergeFailure {
		return
	}
	d, at := e.Details(), time.UnixMilli(e.TimestampMS)
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
	stay.told = now
	h.change(stay.Stay)
}

func (h *StageHistory) moved(project string, d EventDetails, at, now time.Time) {
	from, to := h.index(d.FromStage), h.index(d.ToStage)
	if max(from, to) >= maxStageNames {
		return
	}
	stay := h.open[d.StoryID]
	if stay != nil && stay.Shown && stay.Stage == d.ToStage { // the pipeline was faster
		if before := stay.before; before != nil {
			before.To = at
			h.change(*before)
		}
		stay.From, stay.Shown, stay.before, stay.told = at, false, nil, now
		h.change(stay.Stay)
		return
	}
	if stay != nil && stay.Shown && stay.Stage != d.FromStage {
		stay = h.undo(stay)
	}
	next := Stay{Project: project, StoryID: d.StoryID, Stage: d.ToStage, From: at}
	took := int64(-1)
	switch {
	case stay == nil || stay.Stage != d.FromStage:
		if stay != nil {
			h.end(stay, at, "")
		}
		h.change(Stay{Project: project, StoryID: d.StoryID, Number: at.UnixMilli() - 1, Stage: d.FromStage, To: at, Next: d.ToStage})
	default:
		took = at.UnixMilli() - stay.From.UnixMilli()
		h.end(stay, at, d.ToStage)
	}
	if stay != nil {
		next.BlockedSince, next.MergeFailedSince, next.Number = stay.BlockedSince, stay.MergeFailedSince, stay.Number
	}
	h.remember(move{atMS: at.UnixMilli(), stayedMS: max(-1, took), from: from, to: to})
	if stay = h.begin(next, at); stay != nil {
		stay.told = now
	}
}

// undo takes back what only a pipeline showed. It returns the stay before that, nil where it is not known.
func (h *StageHistory) undo(stay *openStay) *openStay {
	delete(h.open, stay.StoryID)
	key := stayKey{stay.StoryID, stay.Number}
	delete(h.saved, key)
	if h.dropped == nil {
		h.dropped = map[stayKey]bool{}
	}
	h.dropped[key] = true
	h.version++
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

// begin opens a stay that begins at that time; nil when there are too many.
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

func (h *StageHistory) change(s Stay) {
	if h.saved == nil {
		h.saved = map[stayKey]Stay{}
	}
	key := stayKey{s.StoryID, s.Number}
	h.saved[key] = s
	delete(h.dropped, key)
	h.version++
}

func (h *StageHistory) remember(m move) {
	if len(h.moves) >= maxMoves {
		h.moves = slices.Delete(h.moves, 0, maxMoves/10)
	}
	h.moves = append(h.moves, m)
	h.limits = nil
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

// Restore takes in a stay that was saved, in the order in which they ended; those that last come after the others.
func (h *StageHistory) Restore(s Stay) {
	if s.To.IsZero() {
		if h.open == nil {
			h.open = map[string]*openStay{}
		}
		h.open[s.StoryID] = &openStay{Stay: s}
		return
	}
	m := move{atMS: s.To.UnixMilli(), stayedMS: -1, from: h.index(s.Stage), to: h.index(s.Next)}
	if s.Next == "" || max(m.from, m.to) >= maxStageNames {
		return
	}
	if !s.From.IsZero() {
		m.stayedMS = s.To.UnixMilli() - s.From.UnixMilli()
	}
	h.remember(m)
}

// TakeChanges returns the stays to save and those to drop since the last call.
func (h *StageHistory) TakeChanges() (save, drop []Stay) {
	for _, s := range h.saved {
		save = append(save, s)
	}
	for key := range h.dropped {
		drop = append(drop, Stay{StoryID: key.storyID, Number: key.number})
	}
	h.saved, h.dropped = nil, nil
	return save, drop
}

// Version grows with every change.
func (h *StageHistory) Version() uint64 { return h.version }

// Len is how many moves the history holds.
func (h *StageHistory) Len() int { return len(h.moves) }

// Forget drops the moves that count no longer at now.
func (h *StageHistory) Forget(now time.Time) {
	from := now.Add(-moveMemory).UnixMilli()
	h.moves = slices.DeleteFunc(h.moves, func(m move) bool { return m.atMS < from })
	h.limits = nil
}

const (
	stuckByDefault = 24 * time.Hour // where too few stories have passed to know better
	stuckAtLeast   = 4 * time.Hour
	stuckNeeds     = 10 // stories that have passed
)

type stuckLimit struct {
	limit time.Duration
	until time.Time
}

// StuckLimit returns after how long in a stage a story needs somebody: longer than 85 of 100 stories took in the last 90
// days, by nearest rank.
func (h *StageHistory) StuckLimit(stage string, now time.Time) time.Duration {
	if known, ok := h.limits[stage]; ok && now.Before(known.until) {
		return known.limit
	}
	limit := h.findStuckLimit(stage, now)
	if h.limits == nil {
		h.limits = map[string]stuckLimit{}
	}
	h.limits[stage] = stuckLimit{limit, now.Add(time.Hour)}
	return limit
}

func (h *StageHistory) findStuckLimit(stage string, now time.Time) time.Duration {
	index := slices.Index(h.names, stage)
	if index < 0 {
		return stuckByDefault
	}
	oldest := now.Add(-moveMemory).UnixMilli()
	var took []int64
	for _, m := range h.moves {
		if int(m.from) == index && m.stayedMS >= 0 && m.atMS >= oldest {
			took = append(took, m.stayedMS)
		}
	}
	if len(took) < stuckNeeds {
		return stuckByDefault
	}
	slices.Sort(took)
	rank := int(math.Ceil(0.85 * float64(len(took))))
	return max(stuckAtLeast, time.Duration(took[rank-1])*time.Millisecond)
}

// Unsaved gives back what TakeChanges returned and could not be saved, unless there is something newer.
func (h *StageHistory) Unsaved(s Stay, drop bool) {
	key := stayKey{s.StoryID, s.Number}
	if _, newer := h.saved[key]; newer || h.dropped[key] {
		return
	}
	if !drop {
		if h.saved == nil {
			h.saved = map[stayKey]Stay{}
		}
		h.saved[key] = s
		return
	}
	if h.dropped == nil {
		h.dropped = map[stayKey]bool{}
	}
	h.dropped[key] = true
}

// Newer returns a story's stays, given those that are saved: what changed since takes their place. They are in their order.
func (h *StageHistory) Newer(storyID string, saved []Stay) []Stay {
	byNumber := map[int64]Stay{}
	for _, s := range saved {
		byNumber[s.Number] = s
	}
	for key, s := range h.saved {
		if key.storyID == storyID {
			byNumber[key.number] = s
		}
	}
	for key := range h.dropped {
		if key.storyID == storyID {
			delete(byNumber, key.number)
		}
	}
	return slices.SortedFunc(maps.Values(byNumber), func(a, b Stay) int { return cmp.Compare(a.Number, b.Number) })
}
