package service

import (
	"context"
	"time"

	"switchyard/internal/supervise"
)

// A write should wait no longer than 20 ms for a step. A step's duration includes waiting for other writes, so on a
// busy gateway it says little: the limits keep steps from becoming too small to make progress, and pauses from becoming
// too long.
const (
	maxStep, minStep           = 100, 20
	longStep, shortStep        = 6 * time.Millisecond, 3 * time.Millisecond
	minStepPause, maxStepPause = 2 * time.Millisecond, 50 * time.Millisecond
)

// steps divides long work on the store, so that other writes fit in between.
type steps struct {
	size int // how many rows the next step may take
	rest time.Duration
}

// newSteps returns steps with pauses that are rest times as long as the step before.
func newSteps(rest int) *steps { return &steps{size: minStep, rest: time.Duration(rest)} }

func (s *steps) do(ctx context.Context, step func() error) error {
	began := time.Now()
	if err := step(); err != nil {
		return err
	}
	took := time.Since(began)
	switch {
	case took > longStep:
		s.size = max(s.size/2, minStep)
	case took < shortStep:
		s.size = min(s.size+s.size/2, maxStep)
	}
	supervise.Sleep(ctx, min(max(s.rest*took, minStepPause), maxStepPause))
	return ctx.Err()
}
