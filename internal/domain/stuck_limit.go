package domain

import (
	"math"
	"slices"
	"time"
)

const (
	// StuckByDefault is the limit when too few stories have left the stage.
	StuckByDefault = 24 * time.Hour
	stuckAtLeast   = 4 * time.Hour
	stuckNeeds     = 10 // how many stories must have left it to compute one
)

type stuckLimit struct {
	limit time.Duration
	until time.Time
}

// StuckLimit returns how long a story may be in a stage before it needs attention: the 85th percentile, by nearest rank, of the
// stories that left it in the last 90 days.
func (h *StageHistory) StuckLimit(stage string, now time.Time) time.Duration {
	if known, ok := h.limits[stage]; ok && now.Before(known.until) {
		return known.limit
	}
	limit := h.findStuckLimit(stage, now)
	if h.limits == nil {
		h.limits = map[string]stuckLimit{}
	}
	h.limits[stage] = stuckLimit{limit, now.Add(limitsHold)}
	return limit
}

func (h *StageHistory) findStuckLimit(stage string, now time.Time) time.Duration {
	index := slices.Index(h.names, stage)
	if index < 0 {
		return StuckByDefault
	}
	oldest := now.Add(-moveMemory).UnixMilli()
	var took []int64
	for _, m := range h.moves {
		if int(m.from) == index && m.stayedMS >= 0 && m.atMS >= oldest {
			took = append(took, m.stayedMS)
		}
	}
	if len(took) < stuckNeeds {
		return StuckByDefault
	}
	slices.Sort(took)
	rank := int(math.Ceil(0.85 * float64(len(took))))
	return max(stuckAtLeast, time.Duration(took[rank-1])*time.Millisecond)
}
