package service

import (
	"context"
	"errors"
	"time"

	"switchyard/internal/domain"
)

// checkDuty finds out whether this gateway saves stays. One that begins to reads what is stored again, as after a start: its
// predecessor may have saved other things than this one remembers. So it does where the store has lost events.
func (s *Stays) checkDuty() {
	duty, ours := dutyOf(s.duties, domain.DutyStays)
	s.mu.Lock()
	defer s.mu.Unlock()
	restarts := s.events.restarts.Load()
	if ours && (!s.saving || duty.Epoch != s.epoch) || restarts != s.restarts {
		s.stale = true
	}
	s.restarts = restarts
	s.saving, s.epoch = ours, duty.Epoch
}

// dutyContext returns the context of what this gateway saves, false when another one does.
func (s *Stays) dutyContext(ctx context.Context) (_ context.Context, ours bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.saving || s.stale {
		return ctx, false
	}
	return domain.WithDuty(ctx, domain.Duty{Name: domain.DutyStays, Epoch: s.epoch}), true
}

// flush saves what changed, or forgets to, where another gateway saves it.
func (s *Stays) flush(ctx context.Context) error {
	if ctx, ours := s.dutyContext(ctx); ours {
		return unlessLost(s.save(ctx))
	}
	upTo, err := s.store.StaysUpTo(ctx)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stale || upTo < s.upTo && s.unsaved < maxUnsaved { // readers have them from here for as long
		return nil
	}
	for project := range s.changed {
		s.of(project).TakeChanges()
	}
	for project, id := range s.ahead {
		if id <= s.upTo {
			delete(s.ahead, project)
		}
	}
	s.changed, s.names, s.unsaved = map[string]bool{}, map[storyID]string{}, 0
	return nil
}

// flushMoves saves the moves of all projects in one piece, where that is this gateway's to do.
func (s *Stays) flushMoves(ctx context.Context, interval time.Duration) error {
	ctx, ours := s.dutyContext(ctx)
	if !ours {
		return nil
	}
	return unlessLost(s.saveMoves(ctx, interval))
}

// unlessLost is err, nil when another gateway has taken over in the meantime: what was to be saved is that one's to do.
func unlessLost(err error) error {
	if errors.Is(err, domain.ErrDutyLost) {
		return nil
	}
	return err
}

// generationNow returns how often everything was read again. What was observed before counts for nothing in a new one.
func (s *Stays) generationNow() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.generation
}
