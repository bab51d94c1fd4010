package service

import (
	"sync"
	"time"

	"switchyard/internal/domain"
)

// Boards are the boards of all projects at one moment, with what is derived from them. They are shared and must not be
// changed. The times at which pipelines were seen are only updated together with something else.
type Boards struct {
	Registry  *domain.Registry
	Pipelines []domain.ProjectPipeline // of Registry.Projects, in its order
	Charts    []domain.Charts          // likewise; a project's are empty until they are known
	Together  domain.Charts            // of all projects

	alerts   []domain.Alert
	searched []func() *searchedBoard // as Pipelines; nil for a project without an answer
	changes  int
	took     time.Duration // the time to collect them
	once     sync.Once
	shared   any
}

// Board is the board of one project.
type Board struct {
	Pipeline domain.ProjectPipeline
	Charts   domain.Charts
	alerts   []domain.Alert
}

// newBoards collects all boards. The caller holds the lock of the states.
func newBoards(registry *domain.Registry, states []*pipelineState, changes int, age pipelineAge) *Boards {
	n, began := len(states), time.Now()
	b := &Boards{
		Registry: registry, changes: changes,
		Pipelines: make([]domain.ProjectPipeline, n), Charts: make([]domain.Charts, n),
		searched: make([]func() *searchedBoard, n),
	}
	for i, state := range states {
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

// isCurrent reports whether the boards are still the same. The caller holds the lock of the states.
func (b *Boards) isCurrent(changes int, states []*pipelineState, age pipelineAge) bool {
	if b.changes != changes {
		return false
	}
	for i, state := range states {
		if shown := &b.Pipelines[i]; shown.Reachable && shown.Stale != state.isStale(age) {
			return false
		}
	}
	return true
}

// Shared returns what derived returns, which is called once for all readers of these boards.
func (b *Boards) Shared(derived func() any) any {
	b.once.Do(func() { b.shared = derived() })
	return b.shared
}
