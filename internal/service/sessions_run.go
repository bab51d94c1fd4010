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

// sessionSave is how often changed sessions are stored. A crash can lose what was heard in that time.
const sessionSave = time.Second

// load brings memory up to date with the store, but for what has not been stored yet.
func (s *Sessions) load(ctx context.Context) error {
	stored, err := s.store.AgentSessions(ctx)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	gone := map[domain.AgentSessionKey]bool{}
	for _, one := range s.table.list() {
		_, unsaved := s.unsaved[one.Key()]
		_, saving := s.saving[one.Key()]
		gone[one.Key()] = !unsaved && !saving
	}
	stored = slices.DeleteFunc(stored, func(one domain.AgentSession) bool {
		dropped, isDropped := s.dropped[one.Key()]
		return isDropped && !one.Last.After(dropped.Last)
	})
	for _, one := range stored {
		delete(gone, one.Key())
	}
	var keys []domain.AgentSessionKey
	for key, isGone := range gone {
		if isGone {
			keys = append(keys, key)
		}
	}
	s.table.edit(stored, keys...)
	return nil
}

// waiting returns an alert for each session that has waited for a person for a while, if no open question says so.
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
		if err := s.save(ctx); err != nil && domain.CodeOf(err) != domain.Unavailable { // which is retried
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
	s.mu.Lock()
	now, gone := s.unsaved, s.dropped
	s.unsaved, s.saving, s.dropped = sessionsByKey{}, now, sessionsByKey{}
	s.mu.Unlock()
	if len(now)+len(gone) == 0 {
		return nil
	}
	err := s.store.SaveAgentSessions(ctx, slices.Collect(maps.Values(now)), slices.Collect(maps.Values(gone)))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.saving = nil
	if err == nil {
		return nil
	}
	for key, one := range now {
		if _, dropped := s.dropped[key]; !dropped && s.unsaved[key].ID == "" {
			s.unsaved[key] = one
		}
	}
	for key, one := range gone {
		if s.unsaved[key].ID == "" {
			s.dropped[key] = one
		}
	}
	return err
}
