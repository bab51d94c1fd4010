package service

import (
	"context"
	"time"
)

// await waits until these projects are current, or until there is no more need to wait.
func (s *fetcher) await(ctx context.Context, age pipelineAge, asked ...*pipelineState) {
	ctx, cancel := context.WithTimeout(ctx, s.budget(asked, age))
	defer cancel()
	for _, state := range asked {
		s.awaitOne(ctx, state, age.oldest)
	}
}

// budget returns how long to wait for these projects, which is less if there is a usable state of all of them.
func (s *fetcher) budget(awaited []*pipelineState, age pipelineAge) time.Duration {
	if age.trusted == 0 {
		return pipelineBudget
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, state := range awaited {
		if state.known.answer == nil || state.err == nil && state.isStale(age) {
			return pipelineBudget
		}
	}
	return knownBudget
}

// awaitOne returns when a fetch that began at or after oldest has ended, when there is no need to wait, or when ctx
// ends.
func (s *fetcher) awaitOne(ctx context.Context, state *pipelineState, oldest time.Time) {
	for ctx.Err() == nil {
		s.mu.Lock()
		task, failed := state.task, state.err != nil
		done := task == nil || failed || !state.askedAt.Before(oldest) && !s.isOutdated(state)
		var began time.Time
		if task != nil {
			began = task.began
		}
		s.mu.Unlock()
		if done {
			return
		}
		patience := pipelineBudget
		if !began.IsZero() {
			patience -= time.Since(began)
		}
		select {
		case <-task.done:
		case <-time.After(patience):
			return
		case <-ctx.Done():
		}
	}
}
