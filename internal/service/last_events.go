package service

import (
	"context"
	"sync"
	"time"

	"switchyard/internal/domain"
)

// lastTimes caches when each project's last event was, for projects that somebody has asked about.
type lastTimes struct {
	mu    sync.Mutex
	upTo  int64                // the id up to which events are counted in
	times map[string]time.Time // by project; zero for one without events
}

// LastTimes returns when each of these projects' last event was, zero where there was none, in their order. While the store cannot
// be reached it returns what is known.
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

// countIn brings the times up to the newest event, or empties them when they are far behind.
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
