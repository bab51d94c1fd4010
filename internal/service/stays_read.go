package service

import (
	"context"
	"time"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
)

// catchUp reads new events. It returns false if that takes longer than catchUpPatience.
func (s *Stays) catchUp(ctx context.Context) (done bool, err error) {
	return s.catchUpWithin(ctx, catchUpPatience)
}

func (s *Stays) catchUpWithin(ctx context.Context, patience time.Duration) (done bool, err error) {
	s.mu.Lock()
	current := s.loaded && !s.duty.stale && s.upTo >= s.events.LastID()
	s.mu.Unlock()
	if current {
		return true, nil
	}
	done, err = s.catching.do(patience, func() error { return s.read(context.WithoutCancel(ctx)) })
	if domain.CodeOf(err) == domain.Unavailable {
		return false, nil // until then callers use what is in memory
	}
	return done, err
}

// read applies new events of the stream.
func (s *Stays) read(ctx context.Context) error {
	if err := s.load(ctx); err != nil {
		return err
	}
	for more := true; more; {
		page, err := s.events.Page(ctx, domain.EventQuery{After: s.position(), Limit: 1000})
		if err != nil {
			return err
		}
		projects := map[string]bool{}
		for _, e := range page.Events {
			projects[e.Project] = true
		}
		if err := s.remember(ctx, projects); err != nil {
			return err
		}
		if s.add(page.Events) >= maxUnsaved {
			if err := s.flush(ctx); err != nil {
				return err
			}
		}
		more = page.More
	}
	return nil
}

func (s *Stays) position() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.upTo
}

// load reads the saved state.
func (s *Stays) load(ctx context.Context) error {
	s.mu.Lock()
	current := s.loaded && !s.duty.stale
	s.mu.Unlock()
	if current {
		return nil
	}
	upTo, err := s.store.StaysUpTo(ctx)
	if err != nil {
		return err
	}
	s.mu.Lock()
	if s.duty.stale {
		s.reset()
	}
	s.mu.Unlock()
	if err := s.loadMoves(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.upTo, s.saved, s.loaded = upTo, upTo, true
	s.revision++
	return nil
}

// add applies events. It returns how many are not saved yet.
func (s *Stays) add(events []domain.Event) int {
	now := clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if day := now.YearDay(); day != s.day {
		s.day = day
		for _, h := range s.byProject {
			h.Forget(now)
		}
		s.revision++
	}
	for _, e := range events {
		s.upTo = e.ID
		if e.ID <= s.covered[e.Project] {
			continue
		}
		s.of(e.Project).Add(e, now)
		s.markChanged(e.Project)
		s.unsaved++
	}
	return s.unsaved
}
