package service

import (
	"context"
	"sync"
	"time"

	"switchyard/internal/domain"
)

// lastTimes caches the times of projects' last events. It has only the projects that have been requested.
type lastTimes struct {
	mu    sync.Mutex
	upTo  int64                // the last event that has been counted
	times map[string]time.Time // by project; zero for one without events
}

// LastTimes returns the time of each project's last event, zero if it has none, in the projects' order. While the store cannot be
// reached it returns the times in memory.
func (s *Events) LastTimes(ctx context.Context, projects []domain.Project) ([]time.Time, error) {
	l := &s.last
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := s.countIn(ctx, l); err != nil && s.Available() == nil {
		return nil, err
	}
	times := make([]time.Time, len(projects))
	for i, p := range projects {
		at, known := l.times[p.Name]
		if !known && s.Available() == nil {
			page, err := s.Page(ctx, domain.EventQuery{Backward: true, Before: l.upTo + 1, Limit: 1, Project: p.Name})
			if err != nil {
				return nil, err
			}
			for _, e := range page.Events {
				at = e.At
			}
			l.times[p.Name] = at
		}
		times[i] = at
	}
	return times, nil
}

// countIn updates the times with new events, or empties them when they are far behind.
func (s *Events) countIn(ctx context.Context, l *lastTimes) error {
	const atOnce = 1000
	last := s.LastID()
	if l.times == nil || last-l.upTo > atOnce {
		l.times, l.upTo = map[string]time.Time{}, last
		return nil
	}
	if last == l.upTo {
		return nil
	}
	page, err := s.Page(ctx, domain.EventQuery{After: l.upTo, Limit: atOnce})
	if err != nil {
		return err
	}
	for _, e := range page.Events {
		l.times[e.Project] = e.At
		l.upTo = e.ID
	}
	return nil
}
