package domain

import (
	"cmp"
	"maps"
	"slices"
)

func (h *StageHistory) change(s Stay) {
	if h.saved == nil {
		h.saved = map[stayKey]Stay{}
	}
	key := stayKey{s.StoryID, s.Number}
	h.saved[key] = s
	delete(h.dropped, key)
	h.version++
}

func (h *StageHistory) drop(key stayKey) {
	delete(h.saved, key)
	if h.dropped == nil {
		h.dropped = map[stayKey]bool{}
	}
	h.dropped[key] = true
	h.version++
}

// Restore applies a saved stay. It must be called in the order in which stays ended, with current stays last.
func (h *StageHistory) Restore(s Stay) {
	h.version++
	if s.To.IsZero() {
		if h.open == nil {
			h.open = map[string]*openStay{}
		}
		if _, known := h.open[s.StoryID]; known || len(h.open) < maxOpenStays {
			h.open[s.StoryID] = &openStay{Stay: s}
		}
		return
	}
	if s.Next == "" {
		return
	}
	if m, ok := h.newMove(s.StoryID, s.Stage, s.Next, s.From, s.To); ok {
		h.remember(m)
	}
}

// TakeChanges returns the stays to save and those to delete since the last call.
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

// Unsaved returns a change that could not be saved to the history, unless there is a newer one.
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

// Newer returns a story's stays in order: the saved ones updated with unsaved changes.
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
