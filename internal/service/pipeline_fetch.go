package service

import (
	"context"
	"fmt"
	"time"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
)

type pipelineFetch struct {
	askedAt time.Time // zero while it waits for a worker
	done    chan struct{}
}

// ask makes sure that the project is asked at or after oldest. Only one fetch is under way at a time; if that one began too
// early, a second one follows it. Callers hold mu.
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

// fetchPipeline asks one project. It outlives the request that wanted it, and ends within the limits of ProjectServers.
func (s *Pipelines) fetchPipeline(state *pipelineState, fetch *pipelineFetch) {
	generation := s.stays.generationNow()
	s.mu.Lock()
	fetch.askedAt = time.Now()
	known, observed, dated := state.answer, state.observed, state.dated
	if state.observedIn != generation {
		observed = nil
	}
	s.mu.Unlock()
	answer, err := s.callPipeline(state.project, known)
	if err == nil {
		raw := dated.raw
		if answer != known { // of the text, only what has the times is kept
			raw, answer = answer.Raw, answer.WithoutRaw()
		}
		observed = s.stays.observe(state.project.Name, answer, observed, fetch.askedAt)
		dated = s.stays.date(state.project.Name, answer, raw, dated)
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
			state.notices.at = time.Now() // so that stays take account of it
		}
	}
	state.notices.took = time.Since(fetch.askedAt)
	s.fetchLater(state)
	close(fetch.done)
}

func (s *Pipelines) callPipeline(project domain.Project, known *domain.PipelineAnswer) (answer *domain.PipelineAnswer, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = domain.WrapError(domain.BadGateway, fmt.Errorf("panic: %v", cause), "request failed")
		}
	}()
	return s.servers.Pipeline(context.Background(), project, known)
}

// logReachability logs when a project becomes unreachable, and when it is back, not each failure in between.
func (s *Pipelines) logReachability(state *pipelineState, err error) {
	switch {
	case err != nil && (state.err == nil || domain.MessageOf(err) != domain.MessageOf(state.err)):
		s.log.Warn("project is unreachable", "project", state.project.Name, "url", state.project.URL, "error", err)
	case err == nil && state.err != nil:
		s.log.Info("project is reachable again", "project", state.project.Name)
	}
}
