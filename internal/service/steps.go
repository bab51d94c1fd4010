package service

import (
	"context"
	"time"

	"switchyard/internal/supervise"
)

const (
	// stepSize is how many rows a step of long work on the store takes: a write should wait for it at most 20 ms.
	stepSize = 50
	// The pause after a step is long enough for a write, and short enough for the work to make progress: a step's duration
	// includes waiting for other writes, so on a busy gateway it says little.
	minStepPause, maxStepPause = 2 * time.Millisecond, 50 * time.Millisecond
)

// step does a step of long work on the store and then pauses, rest times as long as it took, so that other writes fit
// in between.
func step(ctx context.Context, rest int, work func() error) error {
	began := time.Now()
	if err := work(); err != nil {
		return err
	}
	supervise.Sleep(ctx, min(max(time.Duration(rest)*time.Since(began), minStepPause), maxStepPause))
	return ctx.Err()
}
