package service

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"strings"
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
	// refetchWorkers is how many projects are fetched in the background at once.
	refetchWorkers = 8
)

// feedState is what a project's feed says about its pipeline. Pipelines.mu guards it.
type feedState struct {
	version string        // the last version named in the feed, "" for none and while the feed cannot be read
	failing bool          // the feed cannot be read
	at      time.Time     // when a change was last noticed
	took    time.Duration // the duration of the last fetch
	queued  bool          // a fetch is scheduled
}

// refetchQueue is the queue of projects to fetch in the background.
type refetchQueue struct {
	queue   []*pipelineState
	wake    chan struct{} // of capacity 1
	workers workers
}

func newRefetchQueue(log *slog.Logger) refetchQueue {
	return refetchQueue{wake: make(chan struct{}, 1), workers: workers{size: refetchWorkers, log: log}}
}

// RefetchIfChanged records what a read of the project's feed says about its pipeline. Run fetches the pipeline if it may have changed.
func (s *Pipelines) RefetchIfChanged(project domain.Project, r domain.FeedResult) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.setRegistry(s.projects.Registry())
	i, found := s.registry.Index(project.Name)
	if !found || s.registry.Projects[i] != project {
		return
	}
	if state := s.states[i]; state.mayHaveChanged(r, time.Now()) {
		state.feed.at = time.Now()
		s.refetchLater(state)
	}
}

func (state *pipelineState) mayHaveChanged(r domain.FeedResult, now time.Time) bool {
	feed := &state.feed
	other := r.Version != feed.version || r.Failed != feed.failing
	feed.version, feed.failing = r.Version, r.Failed
	switch {
	case state.isNamed():
		return false
	case other || state.askedAt.IsZero():
		return true
	case r.Version == "" && r.News && (state.answer == nil || !state.answer.EventsOnly):
		return true
	}
	return now.Sub(state.askedAt) > refetchInterval-rand.N(refetchInterval/4)
}

// isNamed reports whether the known pipeline has the version that the feed named last.
func (state *pipelineState) isNamed() bool {
	if state.err != nil || state.answer == nil || state.feed.version == "" {
		return false
	}
	tag := strings.TrimPrefix(state.answer.ETag, "W/")
	return len(tag) == len(state.feed.version)+2 && tag[0] == '"' && tag[1:len(tag)-1] == state.feed.version && tag[len(tag)-1] == '"'
}

// refetchLater schedules a fetch of the project, if it is needed, for the earliest time allowed. The caller holds mu.
func (s *Pipelines) refetchLater(state *pipelineState) {
	feed := &state.feed
	if feed.queued || state.fetch != nil || !state.askedAt.Before(feed.at) {
		return
	}
	feed.queued = true
	pause := time.Until(state.askedAt.Add(max(refetchPause, refetchFactor*feed.took)))
	if pause <= 0 {
		s.enqueue(state)
		return
	}
	time.AfterFunc(pause, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.enqueue(state)
	})
}

func (s *Pipelines) enqueue(state *pipelineState) {
	s.refetches.queue = append(s.refetches.queue, state)
	select {
	case s.refetches.wake <- struct{}{}:
	default:
	}
}

// Run fetches in the background, until ctx ends.
func (s *Pipelines) Run(ctx context.Context) error {
	for {
		select {
		case <-s.refetches.wake:
		case <-ctx.Done():
			return nil
		}
		s.mu.Lock()
		due := s.refetches.queue
		s.refetches.queue = nil
		s.mu.Unlock()
		for _, state := range due {
			s.refetches.workers.add(func() { s.refetch(ctx, state) })
		}
	}
}

// refetch fetches a queued project if that is still needed.
func (s *Pipelines) refetch(ctx context.Context, state *pipelineState) {
	s.Yield(ctx)
	if fetch := s.beginRefetch(ctx, state); fetch != nil {
		_, _ = s.stays.catchUp(ctx) // events newer than the response would require another fetch
		s.fetchPipeline(state, fetch)
	}
}

func (s *Pipelines) beginRefetch(ctx context.Context, state *pipelineState) *pipelineFetch {
	s.mu.Lock()
	defer s.mu.Unlock()
	state.feed.queued = false
	i, registered := s.registry.Index(state.project.Name)
	if ctx.Err() != nil || !registered || s.states[i] != state || state.fetch != nil || !state.askedAt.Before(state.feed.at) {
		return nil
	}
	return state.begin()
}
