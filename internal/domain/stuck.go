package domain

import (
	"math"
	"slices"
	"time"
)

const (
	// StuckByDefault is the limit if too few stories have left the stage.
	StuckByDefault = 24 * time.Hour
	stuckAtLeast   = 4 * time.Hour
	stuckNeeds     = 10 // how many stories must have left it to compute one
	// stuckMemory is how long visits count towards what is usual in a stage.
	stuckMemory = 90 * 24 * time.Hour
)

// StuckLimits returns how long a story may be in each of these stages before it needs attention: the 85th percentile,
// by nearest rank, of the stories that left it in the last 90 days.
func (p *ProjectVisits) StuckLimits(stages []Stage, now time.Time) []time.Duration {
	took := make([][]int64, len(p.stages))
	p.eachTransition(now.Add(-stuckMemory), func(v storyVisit) {
		took[v.stage] = append(took[v.stage], v.to-v.from)
	})
	limits := make([]time.Duration, len(stages))
	for i := range stages {
		limits[i] = StuckByDefault
		at := slices.Index(p.stages, stages[i].Name)
		if at < 0 || len(took[at]) < stuckNeeds {
			continue
		}
		slices.Sort(took[at])
		rank := int(math.Ceil(0.85 * float64(len(took[at]))))
		limits[i] = max(stuckAtLeast, time.Duration(took[at][rank-1])*time.Millisecond)
	}
	return limits
}
