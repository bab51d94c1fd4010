package service

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
)

// ProjectServers calls project servers. It limits time and size of responses.
type ProjectServers interface {
	// Pipeline fetches a project's pipeline. known is the last response or nil, and is itself returned when nothing has changed.
	// The messages of errors say in words why the project is unreachable.
	Pipeline(ctx context.Context, p domain.Project, known *domain.PipelineAnswer) (*domain.PipelineAnswer, error)
}

// Pipelines keeps the projects' pipelines and what is derived from them. It fetches them when a caller needs them, and when a
// project's feed reports a change.
type Pipelines struct {
	projects *Projects
	servers  ProjectServers
	visits   *Visits
	log      *slog.Logger
	queue    fetchQueue

	reaches atomic.Int64 // see Reaches

	mu       sync.Mutex
	registry *domain.Registry
	states   []*pipelineState // of registry.Projects, in its order; replaced, never changed, with the registry
	changes  int              // how often a state or the registry has changed
	last     *Boards
}

func newPipelines(projects *Projects, servers ProjectServers, visits *Visits, log *slog.Logger) *Pipelines {
	return &Pipelines{projects: projects, servers: servers, visits: visits, log: log, queue: fetchQueue{log: log}}
}

// CheckAddress fetches the pipeline from an address that is about to be registered, and stores nothing. It returns Invalid
// for an address that no project can have, and BadGateway with the reason when no project server responds there.
func (s *Pipelines) CheckAddress(ctx context.Context, url string, token *domain.Secret) (*domain.PipelineAnswer, error) {
	p, err := newProject("?", url, token)
	if err != nil {
		return nil, err
	}
	p.Name = "" // it has none yet
	return s.servers.Pipeline(ctx, p, nil)
}

// All returns the registry and every registered project's pipeline, ordered by name. A pipeline is current if its fetch began at
// most maxAge ago; others are fetched, once for all concurrent callers. All waits for a project for at most 250 ms from the
// beginning of its fetch, and for at most 250 ms in all. It does not wait for projects whose last fetch failed.
func (s *Pipelines) All(ctx context.Context, maxAge time.Duration) (*domain.Registry, []domain.ProjectPipeline) {
	age := askedAge(maxAge)
	registry, states := s.update(ctx, age)
	s.mu.Lock()
	defer s.mu.Unlock()
	shown := make([]domain.ProjectPipeline, len(states))
	for i, state := range states {
		shown[i] = state.show(age)
	}
	return registry, shown
}

// update fetches all projects that are not current, derives again what is outdated, and waits for that.
func (s *Pipelines) update(ctx context.Context, age pipelineAge) (*domain.Registry, []*pipelineState) {
	s.mu.Lock()
	s.setRegistry()
	registry, states := s.registry, s.states
	var awaited []*pipelineState
	for _, state := range states {
		if s.renew(state, age, turnNext) {
			awaited = append(awaited, state)
		}
	}
	s.mu.Unlock()
	s.await(ctx, age, awaited...)
	return registry, states
}

// one does what update does for one project. It returns NotFound.
func (s *Pipelines) one(ctx context.Context, project string, age pipelineAge) (*domain.Registry, *pipelineState, error) {
	s.mu.Lock()
	s.setRegistry()
	i, found := s.registry.Index(project)
	if !found {
		s.mu.Unlock()
		return nil, nil, projectNotFound(project)
	}
	registry, state := s.registry, s.states[i]
	awaited := s.renew(state, age, turnFirst)
	s.mu.Unlock()
	if awaited {
		s.await(ctx, age, state)
	}
	return registry, state, nil
}

// find returns a story and its stage from the project's last good response, nil if there is none. It fetches the pipeline and
// waits for it as All does.
func (s *Pipelines) find(ctx context.Context, project, story string) (item *domain.Item, stage string) {
	_, state, err := s.one(ctx, project, askedAge(0))
	if err != nil {
		return nil, ""
	}
	s.mu.Lock()
	known := state.known
	s.mu.Unlock()
	if known == nil {
		return nil, ""
	}
	for _, stage := range known.stages {
		if i := slices.IndexFunc(stage.Items, func(item domain.Item) bool { return item.StoryID == story }); i >= 0 {
			return &stage.Items[i], stage.Name
		}
	}
	return nil, ""
}

// renew begins to fetch a project unless it is current, or derives it again if it is outdated. It reports whether to wait for that.
// The caller holds mu.
func (s *Pipelines) renew(state *pipelineState, age pipelineAge, t turn) (awaited bool) {
	if !state.isCurrent(age) {
		state.want(age.oldest)
		s.begin(state, t)
		return age.trusted == 0 || !state.isNamed() || s.isOutdated(state)
	}
	outdated := s.isOutdated(state)
	if outdated {
		s.begin(state, t)
	}
	return outdated
}

func (s *Pipelines) isOutdated(state *pipelineState) bool {
	return state.known.isOutdated(s.visits.Version(state.project.Name), clock.Now())
}

// setRegistry forgets projects that have been removed or have a new address or token. The caller holds mu.
func (s *Pipelines) setRegistry() {
	registry := s.projects.Registry()
	if s.registry == registry {
		return
	}
	states := make([]*pipelineState, len(registry.Projects))
	for i, project := range registry.Projects {
		states[i] = s.state(project)
		if states[i] == nil {
			states[i] = newPipelineState(project)
		}
	}
	s.registry, s.states, s.last = registry, states, nil
	s.changes++
}

// state returns the state of a project at its address, nil if there is none. The caller holds mu.
func (s *Pipelines) state(project domain.Project) *pipelineState {
	if s.registry == nil {
		return nil
	}
	i, found := s.registry.Index(project.Name)
	if !found || s.registry.Projects[i] != project {
		return nil
	}
	return s.states[i]
}
