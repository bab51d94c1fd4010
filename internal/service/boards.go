package service

import (
	"cmp"
	"sync"
	"time"

	"switchyard/internal/domain"
)

// Boards are the boards of all projects at one moment, with what is derived from them. They are shared and must not be
// changed. The times at which pipelines were seen are updated only together with something else.
type Boards struct {
	Registry  *domain.Registry
	Pipelines []domain.ProjectPipeline // ordered as Registry.Projects
	Charts    []domain.Charts          // likewise; empty for a project while unknown
	Together  domain.Charts            // of all projects

	alerts   [][]domain.Alert      // ordered as Pipelines
	searched []func() *searchIndex // ordered as Pipelines; nil for a project without an answer
	changes  int
	took     time.Duration // how long it took to collect them
	once     sync.Once
	shared   any
}

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
		alerts: make([][]domain.Alert, n), searched: make([]func() *searchIndex, n),
	}
	for i, state := range states {
		b.Pipelines[i], b.Charts[i] = state.show(age), state.known.charts
		b.alerts[i], b.searched[i] = state.alerts(), state.known.searched
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
		if shown := &b.Pipelines[i]; shown.Reachable && shown.Stale == state.isFresh(age, age.grace) {
			return false
		}
	}
	return true
}

// Shared returns the result of derived, which is called once for all readers of these boards.
func (b *Boards) Shared(derived func() any) any {
	b.once.Do(func() { b.shared = derived() })
	return b.shared
}

func (b *Boards) search(stories *ranking[domain.StoryRef]) {
	for i := range b.Pipelines {
		p := &b.Pipelines[i]
		if b.searched[i] == nil {
			continue
		}
		_, done := domain.WorkStages(p.Stages)
		for _, story := range b.searched[i]().stories {
			rank, matches := stories.rank(story.id(), story.name())
			if rank *= 2; int(story.stage) >= done { // of equal matches, a story in work comes first
				rank++
			}
			if !matches {
				continue
			}
			stage := &p.Stages[story.stage]
			item := &stage.Items[story.index]
			stories.add(rank, cmp.Or(story.name(), story.id()), domain.StoryRef{
				Project: p.Project, ID: item.StoryID, Name: item.StoryName, Stage: stage.Name, StageTitle: stage.Title(),
				Item: item, Finished: int(story.stage) >= done,
			})
		}
	}
}
