package service

import (
	"context"
	"time"

	"switchyard/internal/domain"
)

const (
	// refetchInterval is how often a pipeline is fetched whose server does not report changes, less up to a quarter so that fetches
	// of different projects do not coincide.
	refetchInterval = time.Minute
	// The shortest time between two background fetches of a project is refetchPause, or refetchFactor times the duration of the last
	// fetch if that is longer, so that a project that changes all the time costs little.
	refetchPause  = 250 * time.Millisecond
	refetchFactor = 10
)

// RefetchIfChanged takes what a read of the project's feed says about its pipeline, and fetches that if it may have changed.
func (s *Pipelines) RefetchIfChanged(project domain.Project, r domain.FeedResult) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.setRegistry()
	state := s.state(project)
	if state != nil && (state.mayHaveChanged(r, time.Now()) || s.isUnobserved(state) && state.observing == nil) {
		state.feed.at = time.Now()
		s.refetchLater(state)
	}
}

// isUnobserved reports whether the known pipeline has not been observed by visits, as when another gateway did that until now.
func (s *Pipelines) isUnobserved(state *pipelineState) bool {
	return state.known != nil && !state.known.answer.EventsOnly &&
		(state.observed != state.known.answer || state.observedIn != s.visits.Generation())
}

// refetchLater fetches a project that has changed, if nobody else does, at the earliest time allowed. The caller holds mu.
func (s *Pipelines) refetchLater(state *pipelineState) {
	feed := &state.feed
	if feed.paused || state.task != nil || !state.askedAt.Before(feed.at) {
		return
	}
	feed.paused = true
	time.AfterFunc(time.Until(state.askedAt.Add(max(refetchPause, refetchFactor*state.took))), func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		feed.paused = false
		if s.state(state.project) == state && state.askedAt.Before(feed.at) {
			state.want(feed.at)
			s.begin(state, turnBehind)
		}
	})
}

// Run forgets removed projects at once, until ctx ends.
func (s *Pipelines) Run(ctx context.Context) error {
	for {
		changed := s.projects.Changed()
		s.mu.Lock()
		s.setRegistry()
		s.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		}
	}
}
