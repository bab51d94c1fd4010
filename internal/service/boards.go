package service

import (
	"context"
	"time"

	"switchyard/internal/domain"
)

// Boards are the boards of all projects at one moment, with what is derived from them. They are shared and must not be changed. The
// times at which pipelines were seen are only updated together with something else.
type Boards struct {
	Registry  *domain.Registry
	Pipelines []domain.ProjectPipeline // of Registry.Projects, in its order
	Charts    []domain.Charts          // likewise; a project's are empty until they are known
	Together  domain.Charts            // of all projects

	alerts   []domain.Alert
	searched []func() *searchedBoard // as Pipelines; nil for a project without an answer
	changes  int
	took     time.Duration // the time to collect them
}

// Board is the board of one project.
type Board struct {
	Pipeline domain.ProjectPipeline
	Charts   domain.Charts
	alerts   []domain.Alert
}

// Board returns the board of one project as Boards does. It asks no other project. It returns NotFound.
func (s *Pipelines) Board(ctx context.Context, project string, maxAge time.Duration) (*domain.Registry, Board, error) {
	age := pageAge(maxAge, len(s.projects.Registry().Projects))
	registry, state, err := s.one(ctx, project, age)
	if err != nil {
		return nil, Board{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return registry, Board{state.show(age), state.charts(), state.alerts()}, nil
}

// Boards returns all boards, as pages show them: it fetches a pipeline only now and then while the project's feed names the known
// version, so that refreshing pages costs no fetches while nothing happens, and pipelines that are only a little too old do not
// count as stale. It returns the last boards if nothing has changed.
func (s *Pipelines) Boards(ctx context.Context, maxAge time.Duration) *Boards {
	age := pageAge(maxAge, len(s.projects.Registry().Projects))
	s.update(ctx, age)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.setRegistry()
	if s.last == nil || !s.last.isCurrent(s, age) {
		s.last = s.boards(age)
	}
	return s.last
}

// isCurrent reports whether the boards are still the same. The caller holds mu.
func (b *Boards) isCurrent(s *Pipelines, age pipelineAge) bool {
	if b.changes != s.changes {
		return false
	}
	for i, state := range s.states {
		if shown := &b.Pipelines[i]; shown.Reachable && shown.Stale != state.isStale(age) {
			return false
		}
	}
	return true
}

// boards collects all boards. The caller holds mu.
func (s *Pipelines) boards(age pipelineAge) *Boards {
	n, began := len(s.states), time.Now()
	b := &Boards{
		Registry: s.registry, changes: s.changes,
		Pipelines: make([]domain.ProjectPipeline, n), Charts: make([]domain.Charts, n), searched: make([]func() *searchedBoard, n),
	}
	for i, state := range s.states {
		b.Pipelines[i], b.Charts[i] = state.show(age), state.charts()
		b.alerts = append(b.alerts, state.alerts()...)
		if state.known != nil {
			b.searched[i] = state.known.searched
		}
	}
	b.Together = domain.SumCharts(b.Charts)
	b.took = time.Since(began)
	return b
}
