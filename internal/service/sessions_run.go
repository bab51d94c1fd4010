package service

import (
	"context"
	"maps"
	"slices"
	"time"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
	"switchyard/internal/supervise"
)

// sessionSave is how often changed sessions are stored; a crash loses at most that.
const sessionSave = time.Second

// read returns the sessions that are stored, and those about to be.
func (s *Sessions) read(ctx context.Context) ([]domain.AgentSession, error) {
	unsaved := s.notStored() // before reading the store, which has what is stored since
	stored, err := s.store.AgentSessions(ctx)
	list := slices.DeleteFunc(stored, func(one domain.AgentSession) bool {
		return unsaved[one.Key()].Dropped && !one.Last.After(unsaved[one.Key()].Last)
	})
	for _, one := range unsaved {
		if !one.Dropped {
			list = append(list, one)
		}
	}
	return list, err
}

func (s *Sessions) notStored() map[domain.AgentSessionKey]domain.AgentSession {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.unsaved)
}

// waiting returns an alert for each session that has waited for a person for a while, unless an open question says so.
func (s *Sessions) waiting() (found []domain.Alert) {
	now := clock.Now()
	for _, one := range s.List() {
		if one.State != domain.SessionWaiting {
			break
		}
		if one.Asks || now.Sub(one.Since) < domain.WaitingTime {
			continue
		}
		a := domain.Alert{
			Kind: domain.AlertWaiting, Session: one.ID, Agent: one.By, AgentID: one.AgentID, Project: one.Project,
			Reason: "at its terminal", Since: one.Since,
		}
		if one.Host != "" {
			a.Reason += " on " + one.Host
		}
		if one.StoryID != "" {
			a.Story = &domain.Item{StoryID: one.StoryID, StoryName: one.StoryID}
		}
		found = append(found, a)
	}
	return found
}

// Run stores what has changed, and forgets what has ended long ago, until ctx ends.
func (s *Sessions) Run(ctx context.Context) error {
	for supervise.Sleep(ctx, sessionSave) {
		s.forget()
		if err := s.save(ctx); err != nil && domain.CodeOf(err) != domain.Unavailable { // it is retried
			return supervise.UnlessEnded(ctx, err)
		}
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), finalSave)
	defer cancel()
	return s.save(last)
}

func (s *Sessions) forget() {
	now := clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.table.list() {
		if one.At(now, nil).Gone(now) {
			s.drop(one)
		}
	}
}

func (s *Sessions) save(ctx context.Context) error {
	saving := s.notStored()
	if len(saving) == 0 {
		return nil
	}
	var now, gone []domain.AgentSession
	for _, one := range saving {
		if one.Dropped {
			gone = append(gone, one)
		} else {
			now = append(now, one)
		}
	}
	if err := s.store.SaveAgentSessions(ctx, now, gone); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, saved := range saving {
		if left := s.unsaved[key]; left.Dropped == saved.Dropped && left.Last.Equal(saved.Last) {
			delete(s.unsaved, key)
		}
	}
	return nil
}
