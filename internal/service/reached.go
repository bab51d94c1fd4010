package service

import (
	"context"
	"sync/atomic"
	"time"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
)

// reached records when a shared store could last be reached. The zero value means that it can be reached.
type reached struct {
	last  atomic.Int64 // in milliseconds
	since atomic.Int64 // last, while it cannot be reached; else 0
}

// note records how an attempt went that began when the store had been away since then, 0 for not at all. One that began before a
// failure says nothing about the time after it.
func (r *reached) note(since int64, err error) {
	if err == nil {
		r.last.Store(clock.Now().UnixMilli())
		r.since.CompareAndSwap(since, 0)
	} else {
		r.since.CompareAndSwap(0, max(r.last.Load(), 1))
	}
}

// noteAway records a failed call to the store, so that nobody has to wait until following the stream fails, too.
func (s *Events) noteAway(ctx context.Context, err error) {
	if s.following.Load() && ctx.Err() == nil && domain.CodeOf(err) == domain.Unavailable {
		s.reached.note(0, err)
	}
}

// AsOf returns the time up to which memory knows what is in the store, zero while that is now.
func (s *Events) AsOf() time.Time {
	if ms := s.reached.since.Load(); ms != 0 {
		return time.UnixMilli(ms)
	}
	return time.Time{}
}

// Available returns Unavailable while a store that others share cannot be reached.
func (s *Events) Available() error {
	if s.reached.since.Load() != 0 {
		return domain.Errorf(domain.Unavailable, "the database cannot be reached")
	}
	return nil
}

// AsOf returns the time up to which everything that the service shows is known, zero while that is now.
func (s *Service) AsOf() time.Time { return s.Events.AsOf() }

// Latest returns the newest limit events of a project, or of all with "", the newest first. While the store cannot be reached they
// are those that memory knows.
func (s *Events) Latest(ctx context.Context, project string, limit int) ([]domain.Event, error) {
	q := domain.EventQuery{Backward: true, Limit: limit, Project: project}
	page, err := s.Page(ctx, q)
	if domain.CodeOf(err) == domain.Unavailable {
		page, _ = s.tail.Load().find(q)
		return page.Events, nil
	}
	return page.Events, err
}
