package service

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
)

// Charts draws charts from the stories' stays.
type Charts struct {
	events *Events
	stays  *Stays

	mu   sync.Mutex
	last drawing
}

// drawing is the last result of Draw with its inputs.
type drawing struct {
	pipelines []domain.ProjectPipeline
	charts    []domain.Charts // of pipelines, as from
	from      []drawn
	day       int64
	revision  uint64 // of stays
	partial   bool   // the moves of some projects had not been read yet
}

// of returns a project's charts and what they were drawn from. The project is at index i unless the projects have changed.
func (d *drawing) of(i int, project string) (domain.Charts, drawn) {
	if i >= len(d.pipelines) || d.pipelines[i].Project != project {
		byName := func(p domain.ProjectPipeline, name string) int { return strings.Compare(p.Project, name) }
		found := false
		if i, found = slices.BinarySearchFunc(d.pipelines, project, byName); !found {
			return domain.Charts{}, drawn{}
		}
	}
	return d.charts[i], d.from[i]
}

// drawn holds what charts depend on.
type drawn struct {
	day     int64
	version uint64
	first   *domain.Stage // of an answer; answers never change
}

// Draw returns the charts of each project, in their order. Charts are empty while a project's stages are unknown or its moves
// are being read, and all are empty until the stream has been read. While the store cannot be reached, Draw returns the last
// charts.
func (s *Charts) Draw(ctx context.Context, pipelines []domain.ProjectPipeline) ([]domain.Charts, error) {
	return s.drawOrRecall(ctx, pipelines, true)
}

// of returns the charts of one project, as Draw does.
func (s *Charts) of(ctx context.Context, p domain.ProjectPipeline) (domain.Charts, error) {
	charts, err := s.drawOrRecall(ctx, []domain.ProjectPipeline{p}, false)
	return charts[0], err
}

// drawOrRecall does what Draw does. If all is set, these are all projects, and their charts are kept.
func (s *Charts) drawOrRecall(ctx context.Context, pipelines []domain.ProjectPipeline, all bool) ([]domain.Charts, error) {
	charts, err := s.draw(ctx, pipelines, all)
	if err != nil && s.events.Available() != nil {
		return s.drawn(pipelines), nil
	}
	return charts, err
}

func (s *Charts) draw(ctx context.Context, pipelines []domain.ProjectPipeline, all bool) ([]domain.Charts, error) {
	done, err := s.stays.catchUp(ctx)
	if !done || err != nil {
		return make([]domain.Charts, len(pipelines)), err
	}
	now := clock.Now()
	next := drawing{pipelines: pipelines, day: time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, now.Location()).Unix()}
	if last, same := s.lastOf(next); all && same {
		return last, nil
	}
	next.charts = make([]domain.Charts, len(pipelines))
	if err := s.stays.recallMoves(ctx, pipelines); err != nil {
		return next.charts, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stays.mu.Lock()
	defer s.stays.mu.Unlock()
	next.from = make([]drawn, len(pipelines))
	next.revision = s.stays.revision
	for i, p := range pipelines {
		if len(p.Stages) == 0 {
			continue
		}
		if !s.stays.hasMoves(p.Project) {
			next.partial = true
			continue
		}
		known, from := s.last.of(i, p.Project)
		next.from[i] = drawn{next.day, s.stays.version(p.Project), &p.Stages[0]}
		if from != next.from[i] {
			known = s.stays.of(p.Project).Charts(p.Stages, now)
		}
		next.charts[i] = known
	}
	if all {
		s.last = next
	}
	return next.charts, nil
}

// lastOf returns the last charts if they are of the same projects and pipelines. With ten thousand projects, checking each one
// takes a while (BenchmarkSnapshot).
func (s *Charts) lastOf(d drawing) (charts []domain.Charts, same bool) {
	revision := s.stays.revisionNow()
	s.mu.Lock()
	defer s.mu.Unlock()
	same = domain.SameArray(s.last.pipelines, d.pipelines) && s.last.day == d.day && s.last.revision == revision && !s.last.partial
	return s.last.charts, same
}

// drawn returns the last charts of these projects, in their order.
func (s *Charts) drawn(pipelines []domain.ProjectPipeline) []domain.Charts {
	s.mu.Lock()
	defer s.mu.Unlock()
	charts := make([]domain.Charts, len(pipelines))
	for i, p := range pipelines {
		charts[i], _ = s.last.of(i, p.Project)
	}
	return charts
}
