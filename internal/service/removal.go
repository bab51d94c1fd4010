package service

import (
	"context"
	"slices"

	"switchyard/internal/domain"
)

// Removal is a project that was removed, as it was. It holds the project's token.
type Removal struct {
	Project domain.Project
	Active  bool     // it was the active one
	Agents  []string // ids of those that were assigned to it
}

// RemoveProject removes a project. Its agents are unassigned, and when it was the active one none is; its events stay.
// It returns NotFound.
func (s *Service) RemoveProject(ctx context.Context, name string) (Removal, error) {
	s.registry.mu.Lock()
	defer s.registry.mu.Unlock()
	next := *s.Registry()
	i, found := next.Index(name)
	if !found {
		return Removal{}, unknownProject(name)
	}
	if err := s.store.RemoveProject(ctx, name); err != nil {
		return Removal{}, err
	}
	removed := Removal{Project: next.Projects[i], Active: next.Active == name}
	next.Projects = slices.Delete(slices.Clone(next.Projects), i, i+1)
	if removed.Active {
		next.Active = ""
	}
	s.registry.publish(next)
	removed.Agents = s.fleet.unassign(name)
	return removed, nil
}

// RestoreProject takes a removal back: the project is registered as it was, is the active one again if it was and none is
// now, and those of its agents come back that are assigned to none now. It returns how many these are.
// It returns Conflict when the name is taken by now.
func (s *Service) RestoreProject(ctx context.Context, removed Removal) (agents int, err error) {
	s.registry.mu.Lock()
	defer s.registry.mu.Unlock()
	s.fleet.change.Lock()
	defer s.fleet.change.Unlock()
	p, next := removed.Project, *s.Registry()
	i, found := next.Index(p.Name)
	if found {
		return 0, conflict(p.Name)
	}
	active := ""
	if removed.Active && next.Active == "" {
		active, next.Active = p.Name, p.Name
	}
	free := s.fleet.unassigned(removed.Agents)
	if err := s.store.RestoreProject(ctx, active, p, free); err != nil {
		return 0, err
	}
	next.Projects = slices.Insert(slices.Clone(next.Projects), i, p)
	s.registry.publish(next)
	for _, id := range free {
		s.fleet.assign(s.fleet.find(id), p.Name)
	}
	return len(free), nil
}
