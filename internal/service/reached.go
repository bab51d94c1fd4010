package service

import (
	"context"
	"sync/atomic"
	"time"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
)

// reached records when a shared store was last reached. The zero value means that it can be reached.
type reached struct {
	last  atomic.Int64 // in milliseconds
	since atomic.Int64 // last, while it cannot be reached; else 0
}

// note records the result of an attempt. since is the value of r.since when it began: an attempt that began before a failure says
// nothing about the time after it.
func (r *reached) note(since int64, err error) {
	if err == nil {
		r.last.Store(clock.Now().UnixMilli())
		r.since.CompareAndSwap(since, 0)
	} else {
		r.since.CompareAndSwap(0, max(r.last.Load(), 1))
	}
}

// noteAway records a failed call to the store at once, rather than when following the stream fails.
func (s *Events) noteAway(ctx context.Context, err error) {
	if s.following.Load() && ctx.Err() == nil && domain.CodeOf(err) == domain.Unavailable {
		s.reached.note(0, err)
	}
}

// AsOf returns the time up to which memory is up to date with the store, zero while it is current.
func (s *Events) AsOf() time.Time {
	if ms := s.reached.since.Load(); ms != 0 {
		return time.UnixMilli(ms)
	}
	return time.Time{}
}

// Available returns Unavailable while a shared store cannot be reached.
func (s *Events) Available() error {
	if s.reached.since.Load() != 0 {
		return domain.Errorf(domain.Unavailable, "the database cannot be reached")
	}
	return nil
}

// AsOf returns the time up to which the service's data is up to date, zero while it is current.
func (s *Service) AsOf() time.Time { return s.Events.AsOf() }
