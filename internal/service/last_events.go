package service

import (
	"context"
	"time"

	"switchyard/internal/domain"
)

// Latest returns the newest limit events of a project, or of all for "", newest first. While the store cannot be reached it returns
// those in memory.
func (s *Events) Latest(ctx context.Context, project string, limit int) ([]domain.Event, error) {
	q := domain.EventQuery{Backward: true, Limit: limit, Project: project}
	page, err := s.Page(ctx, q)
	if domain.CodeOf(err) == domain.Unavailable {
		page, _ = s.tail.Load().find(q)
		return page.Events, nil
	}
	return page.Events, err
}

// LastTimes returns the time of each project's last event, zero if it has none, in the projects' order. While the store cannot be
// reached it returns the times in memory.
func (s *Events) LastTimes(ctx context.Context, projects []domain.Project) ([]time.Time, error) {
	times := make([]time.Time, len(projects))
	for i, p := range projects {
		events, err := s.Latest(ctx, p.Name, 1)
		if err != nil {
			return nil, err
		}
		for _, e := range events {
			times[i] = e.At
		}
	}
	return times, nil
}
