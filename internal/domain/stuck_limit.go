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
