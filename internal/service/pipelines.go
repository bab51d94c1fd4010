package service

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"switchyard/internal/domain"
)

// ProjectServers calls project servers, within limits of its own on time and size.
type ProjectServers interface {
	// Pipeline asks for a project's pipeline. known is the last answer or nil, and is returned itself when nothing has
	// changed since. Errors have a message that says in words why the project is unreachable.
	Pipeline(ctx context.Context, p domain.Project, known *domain.PipelineAnswer) (*domain.PipelineAnswer, error)
}

const (
	// pipelineBudget is how long an answer waits for a project that was asked, and for all of them together.
	pipelineBudget = 250 * time.Millisecond
	// pipelineWorkers is the number of projects that are asked at once: more of them only wait for each other.
	pipelineWorkers = 64
	// behindWorkers is the number of projects asked at once that nobody waits for.
	behindWorkers = 8
)

// Pipelines are the known pipelines of the projects. They are fetched when somebody wants to see them, and in the background when
// a project's feed says that something is new.
type Pipelines struct {
	projects   *Projects
	servers    ProjectServers
	events     *Events
	stays      *Stays
	duties     Duties
	log        *slog.Logger
	workers    workers
	behind     workers
	noticed    noticed
	firstLooks firstLooks

	mu       sync.Mutex
	registry *domain.Registry
	states   []*pipelineState // of registry.Projects, in its order; replaced, never changed, with the registry
}

// pipelineState is what is known of one project at one address. Pipelines.mu guards all but project.
type pipelineState struct {
	project domain.Project
	fetch   *pipelineFetch // under way, nil when none is
	wanted  time.Time      // a fetch asked earlier than this is to be followed by another

	askedAt time.Time              // when the last fetch that has ended asked; zero before the first
	err     error                  // how it failed
	failed  time.Time              // when it did for the first time since the last good answer
	answer  *domain.PipelineAnswer // the last good answer, nil before the first
	seen    time.Time              // when that came

	observed   *domain.PipelineAnswer // the last one that stays took account of
	observedIn int                    // their generation
	dated      datedPipeline
	notices    notices
	spread     float64 // 0 to 1: projects are not asked again all at once
}

func newPipelines(projects *Projects, servers ProjectServers, events *Events, stays *Stays, duties Duties, log *slog.Logger) *Pipelines {
	return &Pipelines{
		projects: projects, servers: servers, events: events, stays: stays, duties: duties, log: log,
		workers: workers{size: pipelineWorkers}, behind: workers{size: behindWorkers}, noticed: newNoticed(),
	}
}

// All returns every registered project's pipeline, ordered by name, and the registry that they are of. An answer
// counts when its project was asked no more than maxAge ago; others are asked. Calls share what they ask. A project is
// waited for until 250 ms after it was asked and no longer than 250 ms in all; one whose last fetch failed is not
// waited for, though it is asked.
func (s *Pipelines) All(ctx context.Context, maxAge time.Duration) (*domain.Registry, []domain.ProjectPipeline) {
	return s.all(ctx, newestAge(maxAge), nil)
}

// Recent returns what All does, but trusts a project's feed that its pipeline has not changed, and asks again only now and then:
// refreshing pages cost no fetches while nothing happens. Pipelines that are only a little too old do not count as stale.
func (s *Pipelines) Recent(ctx context.Context, maxAge time.Duration) (*domain.Registry, []domain.ProjectPipeline) {
	return s.all(ctx, s.recentAge(maxAge), nil)
}

// recentSince does what Recent does, but returns last, an earlier result that nobody may change, if that shows the same.
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

// waitFor waits for projects that were asked.
func (s *Pipelines) waitFor(ctx context.Context, age pipelineAge, asked ...*pipelineState) {
	budget, first := s.budget(asked, age)
	if first {
		s.firstLooks.begin()
		defer s.firstLooks.end()
	}
	ctx, cancel := context.WithTimeout(ctx, budget)
	defer cancel()
	patience := time.NewTimer(pipelineBudget)
	defer patience.Stop()
	for _, state := range asked {
		s.await(ctx, state, age.oldest, patience)
	}
}

// showAll shows each of the projects; last, if that shows the same. Callers hold mu.
func showAll(states []*pipelineState, age pipelineAge, last []domain.ProjectPipeline) []domain.ProjectPipeline {
	same := 0 // how many of the first show the same
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

// askProjects begins to fetch what is not current. Awaited are those projects of which nothing current is known.
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

// askIfOld begins to fetch a project that is not current, and reports whether the caller has to wait for it. Callers hold mu.
func (s *Pipelines) askIfOld(state *pipelineState, age pipelineAge) (awaited bool) {
	if state.isCurrent(age) {
		return false
	}
	s.ask(state, age.oldest)
	return age.unchanged == 0 || !state.isNamed()
}

// budget returns how long to wait for these projects: less where the known state of all of them would still do. First is whether
// nothing is known yet of one.
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

// setRegistry forgets projects that are gone or have another address or token now.
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

// await returns when the project was asked since oldest and has answered, when it need not be waited for, or when ctx ends. It
// uses the timer.
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

// show returns what is known of the project now, marked stale if it is older than age allows. Callers hold mu.
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
