package service

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"switchyard/internal/domain"
)

// ProjectServers calls project servers. It limits time and size of responses.
type ProjectServers interface {
	// Pipeline fetches a project's pipeline. known is the last response or nil, and is itself returned when nothing has changed.
	// The messages of errors say in words why the project is unreachable.
	Pipeline(ctx context.Context, p domain.Project, known *domain.PipelineAnswer) (*domain.PipelineAnswer, error)
}

const (
	// pipelineBudget is how long a caller waits for one project, and for all of them together.
	pipelineBudget = 250 * time.Millisecond
	// pipelineWorkers is how many projects are fetched at once; more would only wait for each other.
	pipelineWorkers = 64
	// behindWorkers is how many projects are fetched at once for which nobody waits.
	behindWorkers = 8
)

// Pipelines keeps the projects' pipelines. It fetches them when a caller needs them, and in the background when a project's feed
// reports a change.
type Pipelines struct {
	projects     *Projects
	servers      ProjectServers
	events       *Events
	stays        *Stays
	log          *slog.Logger
	workers      workers
	behind       workers
	refetches    refetchQueue
	firstReaders firstReaders

	mu       sync.Mutex
	registry *domain.Registry
	states   []*pipelineState // of registry.Projects, in its order; replaced, never changed, with the registry
}

// pipelineState is the state of one project at one address. Pipelines.mu guards all fields but project.
type pipelineState struct {
	project domain.Project
	fetch   *pipelineFetch // the current fetch, nil if there is none
	wanted  time.Time      // a fetch that began earlier is followed by another

	askedAt time.Time              // when the last completed fetch began; zero before the first
	err     error                  // its error
	failed  time.Time              // the first failure since the last good answer
	answer  *domain.PipelineAnswer // the last good answer, nil before the first
	seen    time.Time              // when that arrived

	observed   *domain.PipelineAnswer // the last answer that stays have observed
	observedIn int                    // their generation
	dated      datedPipeline
	feed       feedState
	spread     float64 // 0 to 1, to spread the fetches of all projects over time
}

func newPipelines(projects *Projects, servers ProjectServers, events *Events, stays *Stays, log *slog.Logger) *Pipelines {
	return &Pipelines{
		projects: projects, servers: servers, events: events, stays: stays, log: log,
		workers: workers{size: pipelineWorkers, log: log}, behind: workers{size: behindWorkers, log: log}, refetches: newRefetchQueue(log),
	}
}

// All returns the registry and every registered project's pipeline, ordered by name. A pipeline is current if its fetch began at
// most maxAge ago; others are fetched, once for all concurrent callers. All waits for a project for at most 250 ms from the
// beginning of its fetch, and for at most 250 ms in all. It does not wait for projects whose last fetch failed.
func (s *Pipelines) All(ctx context.Context, maxAge time.Duration) (*domain.Registry, []domain.ProjectPipeline) {
	return s.all(ctx, newestAge(maxAge), nil)
}

// Recent is All, except that it fetches a pipeline only now and then while the project's feed reports no change, so that refreshing
// pages costs no fetches while nothing happens. Pipelines that are only a little too old do not count as stale.
func (s *Pipelines) Recent(ctx context.Context, maxAge time.Duration) (*domain.Registry, []domain.ProjectPipeline) {
	return s.all(ctx, s.recentAge(maxAge), nil)
}

// recentSince is Recent, except that it returns last, an earlier result that must not be changed, if nothing has changed since.
func (s *Pipelines) recentSince(ctx context.Context, maxAge time.Duration, last []domain.ProjectPipeline) (*domain.Registry, []domain.ProjectPipeline) {
	return s.all(ctx, s.recentAge(maxAge), last)
}

func (s *Pipelines) all(ctx context.Context, age pipelineAge, last []domain.ProjectPipeline) (*domain.Registry, []domain.ProjectPipeline) {
	registry, states, awaited := s.askProjects(age)
	s.waitFor(ctx, age, awaited...)
	s.mu.Lock()
	defer s.mu.Unlock()
	return registry, showAll(states, age, last)
}

// waitFor waits for fetches of projects.
func (s *Pipelines) waitFor(ctx context.Context, age pipelineAge, asked ...*pipelineState) {
	budget, first := s.budget(asked, age)
	if first {
		s.firstReaders.begin()
		defer s.firstReaders.end()
	}
	ctx, cancel := context.WithTimeout(ctx, budget)
	defer cancel()
	patience := time.NewTimer(pipelineBudget)
	defer patience.Stop()
	for _, state := range asked {
		s.await(ctx, state, age.oldest, patience)
	}
}

// showAll returns the pipelines of the projects, last itself if it is the same. The caller holds mu.
func showAll(states []*pipelineState, age pipelineAge, last []domain.ProjectPipeline) []domain.ProjectPipeline {
	same := 0 // the number of unchanged ones at the beginning
	if len(last) == len(states) && len(last) > 0 {
		for same < len(states) && states[same].show(age).ShowsSame(last[same]) {
			same++
		}
		if same == len(states) {
			return last
		}
	}
	result := make([]domain.ProjectPipeline, len(states))
	for i, state := range states {
		result[i] = state.show(age)
	}
	return result
}

// askProjects begins to fetch all projects that are not current. It returns in awaited those that the caller must wait for.
func (s *Pipelines) askProjects(age pipelineAge) (registry *domain.Registry, states, awaited []*pipelineState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.setRegistry(s.projects.Registry())
	for _, state := range s.states {
		if s.askIfOld(state, age) {
			awaited = append(awaited, state)
		}
	}
	return s.registry, s.states, awaited
}

// askIfOld begins to fetch a project unless it is current, and reports whether to wait for it. The caller holds mu.
func (s *Pipelines) askIfOld(state *pipelineState, age pipelineAge) (awaited bool) {
	if state.isCurrent(age) {
		return false
	}
	s.ask(state, age.oldest)
	return age.unchanged == 0 || !state.isNamed()
}

// budget returns how long to wait for these projects, which is less if there is a usable state of all of them. first is whether
// nothing is known yet of one of them.
func (s *Pipelines) budget(awaited []*pipelineState, age pipelineAge) (budget time.Duration, first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	budget = knownBudget
	if age.grace == 0 {
		budget = pipelineBudget
	}
	for _, state := range awaited {
		if state.answer == nil && state.err == nil {
			return pipelineBudget, true
		}
		if state.answer == nil || state.err == nil && !state.isCurrent(age.withGrace()) {
			budget = pipelineBudget
		}
	}
	return budget, false
}

// setRegistry forgets projects that have been removed or have a new address or token.
func (s *Pipelines) setRegistry(registry *domain.Registry) {
	if s.registry == registry {
		return
	}
	states := make([]*pipelineState, len(registry.Projects))
	for i, project := range registry.Projects {
		states[i] = &pipelineState{project: project, spread: rand.Float64()}
		if s.registry == nil {
			continue
		}
		if j, found := s.registry.Index(project.Name); found && s.registry.Projects[j] == project {
			states[i] = s.states[j]
		}
	}
	s.registry, s.states = registry, states
}

// await returns when a fetch that began at or after oldest has ended, when there is no need to wait, or when ctx ends. It uses the
// timer.
func (s *Pipelines) await(ctx context.Context, state *pipelineState, oldest time.Time, timer *time.Timer) {
	for ctx.Err() == nil {
		s.mu.Lock()
		fetch, failed, fresh := state.fetch, state.err != nil, !state.askedAt.Before(oldest)
		var askedAt time.Time
		if fetch != nil {
			askedAt = fetch.askedAt
		}
		s.mu.Unlock()
		if fetch == nil || failed || fresh {
			return
		}
		patience := pipelineBudget
		if !askedAt.IsZero() {
			patience -= time.Since(askedAt)
		}
		timer.Reset(patience)
		select {
		case <-fetch.done:
		case <-timer.C:
			return
		case <-ctx.Done():
		}
	}
}

// show returns the project's pipeline, marked stale if it is older than age allows. The caller holds mu.
func (state *pipelineState) show(age pipelineAge) domain.ProjectPipeline {
	shown := domain.ProjectPipeline{
		Project:   state.project.Name,
		URL:       state.project.URL,
		Reachable: state.err == nil && state.answer != nil,
		LastSeen:  state.seen,
	}
	if state.answer != nil {
		shown.Stages, shown.Summarized, shown.Raw, shown.FetchedAt = state.dated.stages, state.dated.summary, state.dated.raw, state.seen
		shown.EventsOnly, shown.Note = state.answer.EventsOnly, state.answer.Note
	}
	switch {
	case shown.Reachable:
		shown.Stale = !state.isCurrent(age.withGrace())
	case state.err != nil:
		shown.Error, shown.FailedSince = domain.MessageOf(state.err), state.failed
	default:
		shown.Error = domain.NoAnswerYet
	}
	return shown
}
