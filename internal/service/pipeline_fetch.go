package service

import (
	"context"
	"time"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
	"switchyard/internal/supervise"
)

type pipelineFetch struct {
	askedAt time.Time // when it began; zero while it waits for a worker
	done    chan struct{}
}

// ask makes sure that a fetch of the project begins at or after oldest. There is only one fetch at a time; if the current one
// began earlier, a second one follows it. The caller holds mu.
func (s *Pipelines) ask(state *pipelineState, oldest time.Time) {
	if state.wanted.Before(oldest) {
		state.wanted = oldest
	}
	if state.fetch == nil {
		workers := &s.workers
		if state.err != nil {
			workers = &s.behind
		}
		fetch := state.begin()
		workers.add(func() { s.fetchPipeline(state, fetch) })
	}
}

func (state *pipelineState) begin() *pipelineFetch {
	state.fetch = &pipelineFetch{done: make(chan struct{})}
	return state.fetch
}

// fetchPipeline fetches a project's pipeline. It outlives the request that caused it, and ends within the limits of
// ProjectServers.
func (s *Pipelines) fetchPipeline(state *pipelineState, fetch *pipelineFetch) {
	generation := s.stays.generationNow()
	s.mu.Lock()
	fetch.askedAt = time.Now()
	known, observed, dated := state.answer, state.observed, state.dated
	if state.observedIn != generation {
		observed = nil
	}
	s.mu.Unlock()
	var answer *domain.PipelineAnswer
	err := supervise.Call(func() (err error) {
		if answer, err = s.servers.Pipeline(context.Background(), state.project, known); err != nil {
			return err
		}
		raw := dated.raw
		if answer != known { // only the dated text is kept
			raw, answer = answer.Raw, answer.WithoutRaw()
		}
		observed = s.stays.observe(state.project.Name, answer, observed, fetch.askedAt)
		dated = s.stays.date(state.project.Name, answer, raw, dated)
		return nil
	})
	if supervise.IsPanic(err) {
		err = domain.WrapError(domain.BadGateway, err, "request failed")
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	s.logReachability(state, err)
	if err != nil && state.err == nil {
		state.failed = clock.Now()
	}
	state.fetch, state.askedAt, state.err = nil, fetch.askedAt, err
	state.observed, state.observedIn = observed, generation
	if err == nil {
		state.answer, state.dated, state.seen = answer, dated, clock.Now()
		if fetch.askedAt.Before(state.wanted) {
			s.ask(state, state.wanted)
		}
		if answer != observed && !answer.EventsOnly {
			state.feed.at = time.Now() // so that it is observed by stays
		}
	}
	state.feed.took = time.Since(fetch.askedAt)
	s.refetchLater(state)
	close(fetch.done)
}

// logReachability logs when a project becomes unreachable and when it is reachable again, not each failure in between.
func (s *Pipelines) logReachability(state *pipelineState, err error) {
	switch {
	case err != nil && (state.err == nil || domain.MessageOf(err) != domain.MessageOf(state.err)):
		s.log.Warn("project is unreachable", "project", state.project.Name, "url", state.project.URL, "error", err)
	case err == nil && state.err != nil:
		s.log.Info("project is reachable again", "project", state.project.Name)
	}
}
