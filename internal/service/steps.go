package service

import (
	"context"
	"time"

	"switchyard/internal/supervise"
)

// A write that waits for a step should wait no longer than 20 ms. The time of a step includes that it waits for writes of
// others, so it says little on a busy gateway: steps do not become too small to get anywhere, nor pauses too long.
const (
	maxStep, minStep           = 100, 20
	longStep, shortStep        = 6 * time.Millisecond, 3 * time.Millisecond
	minStepPause, maxStepPause = 2 * time.Millisecond, 50 * time.Millisecond
)

// steps divide a long work on the store so that writes of others fit between.
type steps struct {
	size int // how many rows the next step may take
	rest time.Duration
}

// newSteps returns steps each of which is followed by a pause that is rest times as long.
func newSteps(rest int) *steps { return &steps{size: minStep, rest: time.Duration(rest)} }

// do takes a step and pauses after it.
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
