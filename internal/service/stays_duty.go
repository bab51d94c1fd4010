package service

import (
	"context"
	"errors"
	"time"

	"switchyard/internal/domain"
)

// savingDuty says whether this gateway saves stays: if several share the store, each keeps stays in memory, and one of them saves
// them. Stays.mu guards it.
type savingDuty struct {
	ours     bool
	epoch    int64
	stale    bool  // the store must be read again before anything is saved
	restarts int64 // Events.restarts as last seen
}

// checkDuty checks whether this gateway saves stays. When it begins to, or when the store has lost events, it reads the store again
// as after a start: the gateway before may have saved something else than this one has in memory.
func (s *Stays) checkDuty() {
	token, ours := s.leader.Token()
	s.mu.Lock()
	defer s.mu.Unlock()
	restarts := s.events.restarts.Load()
	if ours && (!s.duty.ours || token != s.duty.epoch) || restarts != s.duty.restarts {
		s.duty.stale = true
	}
	s.duty.restarts = restarts
	s.duty.ours, s.duty.epoch = ours, token
}

// saves reports whether this gateway saves.
func (s *Stays) saves() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.duty.ours && !s.duty.stale
}

// flush saves changes, or drops them if another gateway saves.
func (s *Stays) flush(ctx context.Context) error {
	if s.saves() {
		return unlessLost(s.save(ctx))
	}
	upTo, err := s.store.StaysUpTo(ctx)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.duty.stale || upTo < s.upTo && s.unsaved < maxUnsaved { // the other gateway has not saved them yet
		return nil
	}
	for project := range s.changed {
		s.of(project).TakeChanges()
	}
	for project, id := range s.covered {
		if id <= s.upTo {
			delete(s.covered, project)
		}
	}
	s.changed, s.names, s.unsaved = map[string]bool{}, map[storyID]string{}, 0
	return nil
}

// flushMoves saves the moves of all projects together, if this gateway saves stays.
func (s *Stays) flushMoves(ctx context.Context, interval time.Duration) error {
	if !s.saves() {
		return nil
	}
	return unlessLost(s.saveMoves(ctx, interval))
}

// unlessLost returns err, nil if another gateway has taken over saving in the meantime.
func unlessLost(err error) error {
	if errors.Is(err, domain.ErrNotLeader) {
		return nil
	}
	return err
}

// generationNow returns how often everything has been read again. Observations of earlier generations do not count.
func (s *Stays) generationNow() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.generation
}
