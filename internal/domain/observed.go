package domain

import (
	"slices"
	"time"
)

// Observe applies a pipeline whose fetch began at asked. complete means that a story missing from it is not on the board. It
// returns false if it skipped something that newer events contradict; then the pipeline must be observed again.
func (h *StageHistory) Observe(project string, stages []Stage, complete bool, asked, now time.Time) (settled bool) {
	settled = true
	shown := map[string]bool{}
	for _, stage := range stages {
		if h.index(stage.Name) >= maxStageNames {
			continue
		}
		for i := range stage.Items {
			item := &stage.Items[i]
			if shown[item.StoryID] {
				continue
			}
			shown[item.StoryID] = true
			if stay := h.open[item.StoryID]; stay != nil && stay.eventAt.After(asked) {
				settled = settled && stay.agrees(stage.Name, item)
				continue
			}
			h.observeItem(project, stage.Name, item, now)
		}
	}
	if !complete {
		return settled
	}
	for id, stay := range h.open {
		switch {
		case shown[id]:
		case stay.eventAt.After(asked):
			settled = false
		default:
			h.end(stay, now, "")
		}
	}
	return settled
}

// agrees reports whether the item shows the same state as the stay.
func (s *openStay) agrees(stage string, item *Item) bool {
	return s.Stage == stage && s.BlockedSince.IsZero() == (item.Blocked == "") && s.MergeFailedSince.IsZero() == (item.MergeFailure == "")
}

func (h *StageHistory) observeItem(project, stage string, item *Item, now time.Time) {
	since := item.Since
	if since.UnixMilli() <= 0 || since.After(now) {
		since = now
	}
	stay, began := h.open[item.StoryID], now
	switch {
	case stay == nil:
		began = since // possibly since the beginning of the stay
		stay = h.begin(Stay{Project: project, StoryID: item.StoryID, Stage: stage, From: since, Shown: true}, since)
		if stay == nil {
			return
		}
	case stay.Stage == "": // there was an event about the story before its stage was known
		stay.Stage, stay.From = stage, since
		h.change(stay.Stay)
	case stay.Stage != stage:
		before := *stay
		since = later(since, stay.From)
		h.end(stay, since, stage)
		next := Stay{
			Project: project, StoryID: item.StoryID, Number: before.Number, Stage: stage, From: since, Shown: true,
			BlockedSince: before.BlockedSince, MergeFailedSince: before.MergeFailedSince,
		}
		if stay = h.begin(next, since); stay == nil {
			return
		}
		ended := h.saved[stayKey{before.StoryID, before.Number}]
		ended.Blocked = before.Blocked // recomputed when an event shows when the stay ended
		stay.before = &ended
		if m, ok := h.newMove(item.StoryID, before.Stage, stage, before.From, since); ok {
			h.remember(m)
			stay.move = &m
		}
	case stay.Shown && since.Before(stay.From):
		stay.From = since
		h.change(stay.Stay)
	}
	if stay.note(item, began, now) {
		h.change(stay.Stay)
	}
}

// note records when a block or a merge failure of the item begins or ends.
func (s *openStay) note(item *Item, began, now time.Time) (changed bool) {
	if blocked := item.Blocked != ""; blocked == s.BlockedSince.IsZero() {
		changed = true
		if blocked {
			s.BlockedSince = began
		} else {
			s.Blocked = s.BlockedFor(now)
			s.BlockedSince = time.Time{}
		}
	}
	if failed := item.MergeFailure != ""; failed == s.MergeFailedSince.IsZero() {
		changed = true
		s.MergeFailedSince = time.Time{}
		if failed {
			s.MergeFailedSince = began
		}
	}
	return changed
}

// Times returns the stages with the known times of their items. It shares unchanged stages.
func (h *StageHistory) Times(stages []Stage) []Stage {
	dated := make([]Stage, len(stages))
	for i, stage := range stages {
		dated[i] = stage
		copied := false
		for j := range stage.Items {
			item, changed := h.times(stage.Name, stage.Items[j])
			if !changed {
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

// times returns an item in a stage with its known times.
func (h *StageHistory) times(stage string, item Item) (dated Item, changed bool) {
	stay := h.open[item.StoryID]
	if stay == nil || stay.Stage != stage {
		return item, false
	}
	dated = item
	dated.Since, dated.BlockedSince, dated.MergeFailedSince = stay.From, stay.BlockedSince, stay.MergeFailedSince
	return dated, dated != item
}
