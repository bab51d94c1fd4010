package service

import (
	"context"
	"sync"

	"switchyard/internal/domain"
)

// lastStamps is when each project's last event was, as far as somebody has asked.
type lastStamps struct {
	mu     sync.Mutex
	upTo   int64            // the id up to which events are counted in
	stamps map[string]int64 // by project; 0 for one without events
}

// LastStamps returns the timestamp_ms of each of these projects' last event, 0 where there was none, in their order.
func (s *Events) LastStamps(ctx context.Context, projects []domain.Project) ([]int64, error) {
	l := &s.last
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := s.countIn(ctx, l); err != nil {
		return nil, err
	}
	stamps := make([]int64, len(projects))
	for i, p := range projects {
		stamp, known := l.stamps[p.Name]
		if !known {
			page, err := s.Page(ctx, domain.EventQuery{Backward: true, Before: l.upTo + 1, Limit: 1, Project: p.Name})
			if err != nil {
				return nil, err
			}
			for _, e := range page.Events {
				stamp = e.TimestampMS
			}
			l.stamps[p.Name] = stamp
		}
		stamps[i] = stamp
	}
	return stamps, nil
}

// countIn brings l up to the newest event, or, when it is far behind, empties it.
func (s *Events) countIn(ctx context.Context, l *lastStamps) error {
	const atOnce = 1000
	last := s.LastID()
	if l.stamps == nil || last-l.upTo > atOnce {
		l.stamps, l.upTo = map[string]int64{}, last
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
		l.stamps[e.Project] = e.TimestampMS
		l.upTo = e.ID
	}
	return nil
}
