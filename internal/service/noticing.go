package service

import (
	"context"
	"math/rand/v2"
	"strings"
	"time"

	"switchyard/internal/domain"
)

const (
	// noticeInterval is how often a pipeline is fetched whose server does not report changes, less up to a quarter so that fetches
	// of different projects do not coincide.
	noticeInterval = time.Minute
	// The shortest time between two background fetches of a project is noticePause, or noticeFactor times the duration of the last
	// fetch if that is longer, so that a project that changes all the time costs little.
	noticePause  = 250 * time.Millisecond
	noticeFactor = 10
	// noticeWorkers is how many projects are fetched in the background at once.
	noticeWorkers = 8
)

// notices is what a project's feed says about its pipeline. Pipelines.mu guards it.
type notices struct {
	version string        // the last version named in the feed, "" for none and while the feed cannot be read
	failing bool          // the feed cannot be read
	at      time.Time     // when a change was last noticed
	took    time.Duration // the duration of the last fetch
	queued  bool          // a fetch is scheduled
}

// noticed is the queue of projects to fetch in the background.
type noticed struct {
	queue   []*pipelineState
	wake    chan struct{} // of capacity 1
	workers workers
}

func newNoticed() noticed {
	return noticed{wake: make(chan struct{}, 1), workers: workers{size: noticeWorkers}}
}

// Notice records what a read of the project's feed says about its pipeline. Run fetches the pipeline if it may have changed.
func (s *Pipelines) Notice(project domain.Project, r domain.FeedResult) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.setRegistry(s.projects.Registry())
	i, found := s.registry.Index(project.Name)
	if !found || s.registry.Projects[i] != project {
		return
	}
	if state := s.states[i]; state.mayHaveChanged(r, time.Now()) {
		state.notices.at = time.Now()
		s.fetchLater(state)
	}
}

func (state *pipelineState) mayHaveChanged(r domain.FeedResult, now time.Time) bool {
	n := &state.notices
	other := r.Version != n.version || r.Failed != n.failing
	n.version, n.failing = r.Version, r.Failed
	switch {
	case state.isNamed():
		return false
	case other || state.askedAt.IsZero():
		return true
	case r.Version == "" && r.News && (state.answer == nil || !state.answer.EventsOnly):
		return true
	}
	return now.Sub(state.askedAt) > noticeInterval-rand.N(noticeInterval/4)
}

// isNamed reports whether the known pipeline has the version that the feed named last.
func (state *pipelineState) isNamed() bool {
	if state.err != nil || state.answer == nil || state.notices.version == "" {
		return false
	}
	tag := strings.TrimPrefix(state.answer.ETag, "W/")
	return len(tag) == len(state.notices.version)+2 && tag[0] == '"' && tag[1:len(tag)-1] == state.notices.version && tag[len(tag)-1] == '"'
}

// fetchLater schedules a fetch of the project, if it is needed, for the earliest time allowed. The caller holds mu.
func (s *Pipelines) fetchLater(state *pipelineState) {
	n := &state.notices
	if n.queued || state.fetch != nil || !state.askedAt.Before(n.at) {
		return
	}
	n.queued = true
	pause := time.Until(state.askedAt.Add(max(noticePause, noticeFactor*n.took)))
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
	s.noticed.queue = append(s.noticed.queue, state)
	select {
	case s.noticed.wake <- struct{}{}:
	default:
	}
}

// Run fetches in the background, until ctx ends.
func (s *Pipelines) Run(ctx context.Context) error {
	var look <-chan time.Time // at projects that other gateways follow
	if !isAlone(s.duties) {
		tick := time.NewTicker(othersInterval)
		defer tick.Stop()
		look = tick.C
	}
	var others others
	for {
		select {
		case <-s.noticed.wake:
		case <-look:
			if err := s.noticeOthers(ctx, &others); err != nil {
				return unlessEnded(ctx, err)
			}
		case <-ctx.Done():
			return nil
		}
		s.mu.Lock()
		due := s.noticed.queue
		s.noticed.queue = nil
		s.mu.Unlock()
		for _, state := range due {
			s.noticed.workers.add(func() { s.fetchNoticed(ctx, state) })
		}
	}
}

// fetchNoticed fetches a queued project if that is still needed.
func (s *Pipelines) fetchNoticed(ctx context.Context, state *pipelineState) {
	s.Yield(ctx)
	if fetch := s.beginNoticed(ctx, state); fetch != nil {
		_, _ = s.stays.catchUp(ctx) // events newer than the response would require another fetch
		s.fetchPipeline(state, fetch)
	}
}

func (s *Pipelines) beginNoticed(ctx context.Context, state *pipelineState) *pipelineFetch {
	s.mu.Lock()
	defer s.mu.Unlock()
	state.notices.queued = false
	i, registered := s.registry.Index(state.project.Name)
	if ctx.Err() != nil || !registered || s.states[i] != state || state.fetch != nil || !state.askedAt.Before(state.notices.at) {
		return nil
	}
	return state.begin()
}
