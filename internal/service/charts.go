package service

import (
	"context"
	"slices"
	"sync"
	"time"

	"switchyard/internal/domain"
)

// Charts are drawn from where the stories have been.
type Charts struct {
	stays *Stays

	mu        sync.Mutex
	byProject map[string]drawnCharts
	pipelines []domain.ProjectPipeline // of which charts were drawn last
	charts    []domain.Charts
}

// drawnCharts are a project's charts, and what they were drawn from.
type drawnCharts struct {
	charts domain.Charts
	from   drawn
}

// drawn is what charts depend on.
type drawn struct {
	day     int64
	version uint64
	first   *domain.Stage // of an answer, which never changes
}

// Draw returns the charts of each of these projects, in their order; empty ones where the stages are not known, where the
// moves are still being read, and for all while the stream is being caught up with: then they are there a little later. While the
// store cannot be reached they are those that were drawn last.
func (s *Charts) Draw(ctx context.Context, pipelines []domain.ProjectPipeline) ([]domain.Charts, error) {
	charts, err := s.draw(ctx, pipelines)
	if err != nil && s.stays.events.Available() != nil {
		return s.drawn(pipelines), nil
	}
	return charts, err
}

func (s *Charts) draw(ctx context.Context, pipelines []domain.ProjectPipeline) ([]domain.Charts, error) {
	charts := make([]domain.Charts, len(pipelines))
	done, err := s.stays.catchUp(ctx)
	if !done || err != nil {
		return charts, err
	}
	if err := s.stays.recallMoves(ctx, pipelines); err != nil {
		return charts, err
	}
	now := time.Now()
	day := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, now.Location()).Unix()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stays.mu.Lock()
	defer s.stays.mu.Unlock()
	if len(pipelines) > 0 && len(pipelines) == len(s.pipelines) && &pipelines[0] == &s.pipelines[0] && !s.isOutdated(day) {
		return s.charts, nil
	}
	last := s.byProject
	s.byProject = make(map[string]drawnCharts, len(pipelines))
	for i, p := range pipelines {
		if len(p.Stages) == 0 || !s.stays.hasMoves(p.Project) {
			continue
		}
		known, from := last[p.Project], s.source(p, day)
		if known.from != from {
			known = drawnCharts{s.stays.of(p.Project).Charts(p.Stages, now), from}
		}
		s.byProject[p.Project], charts[i] = known, known.charts
	}
	s.pipelines, s.charts = pipelines, charts
	return charts, nil
}

// source is what a project's charts would be drawn from on this day. Callers hold Stays.mu.
func (s *Charts) source(p domain.ProjectPipeline, day int64) drawn {
	return drawn{day, s.stays.version(p.Project), &p.Stages[0]}
}

// isOutdated reports whether what was drawn last would be drawn otherwise now. Callers hold mu and Stays.mu.
func (s *Charts) isOutdated(day int64) bool {
	return slices.ContainsFunc(s.pipelines, func(p domain.ProjectPipeline) bool {
		return len(p.Stages) > 0 && s.stays.hasMoves(p.Project) && s.byProject[p.Project].from != s.source(p, day)
	})
}

// drawn returns the charts that were drawn of these projects last, in their order.
func (s *Charts) drawn(pipelines []domain.ProjectPipeline) []domain.Charts {
	s.mu.Lock()
	defer s.mu.Unlock()
	charts := make([]domain.Charts, len(pipelines))
	for i, p := range pipelines {
		charts[i] = s.byProject[p.Project].charts
	}
	return charts
}
