package service

import (
	"context"
	"time"

	"switchyard/internal/supervise"
)

// A write that waits for a step should wait no longer than 20 ms.
const (
	maxStep, minStep    = 200, 5
	longStep, shortStep = 10 * time.Millisecond, 4 * time.Millisecond
	minStepPause        = 2 * time.Millisecond
)

// steps divide a long work on the store so that writes of others fit between.
type steps struct {
	size int // how many rows the next step may take
	rest time.Duration
}

// newSteps returns steps each of which is followed by a pause that is rest times as long.
func newSteps(rest int) *steps { return &steps{size: maxStep / 4, rest: time.Duration(rest)} }

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
	supervise.Sleep(ctx, max(s.rest*took, minStepPause))
	return ctx.Err()
}
