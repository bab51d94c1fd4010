package service

import (
	"context"
	"slices"
	"strings"

	"switchyard/internal/domain"
)

// Remove removes a project and unassigns its agents. If it was the active project, none is active afterwards. Its events are kept.
// It returns NotFound.
func (s *Projects) Remove(ctx context.Context, name string) (removed domain.Removal, err error) {
	if err := refresh(ctx, s.stored, s.agents.stored); err != nil { // Restore must later restore what is stored now
		return domain.Removal{}, err
	}
	err = s.change(ctx, func() (err error) {
		removed, err = s.remove(ctx, name)
		return err
	})
	return removed, err
}

func (s *Projects) remove(ctx context.Context, name string) (domain.Removal, error) {
	next := *s.Registry()
	i, found := next.Index(name)
	if !found {
		return domain.Removal{}, projectNotFound(name)
	}
	s.agents.change.Lock() // the removal must not show before its agents are unassigned
	defer s.agents.change.Unlock()
	removed := domain.Removal{Project: next.Projects[i], Active: next.Active == name}
	change := domain.Change{Action: domain.ProjectRemoved, Subject: name, Detail: removalDetail(removed)}
	err := s.audit.change(ctx, change, func(ctx context.Context) error { return s.store.RemoveProject(ctx, name) })
	if err != nil {
		return domain.Removal{}, err
	}
	next.Projects = slices.Delete(slices.Clone(next.Projects), i, i+1)
	if removed.Active {
		next.Active = ""
	}
	s.publish(next)
	s.access.endAgentTokens(func(t domain.NamedToken) bool { return t.Project == name })
	removed.Agents = s.agents.unassign(name)
	return removed, nil
}

// Restore undoes a removal. It registers the project as it was, makes it active if it was and no other project is, and assigns those
// of its agents again that are not assigned now. It returns their number. It returns Conflict when the name has been taken.
func (s *Projects) Restore(ctx context.Context, removed domain.Removal) (agents int, err error) {
	if err := refresh(ctx, s.stored, s.agents.stored); err != nil {
		return 0, err
	}
	err = s.change(ctx, func() (err error) {
		agents, err = s.restore(ctx, removed)
		return err
	})
	return agents, err
}

func (s *Projects) restore(ctx context.Context, removed domain.Removal) (agents int, err error) {
	s.agents.change.Lock()
	defer s.agents.change.Unlock()
	p, next := removed.Project, *s.Registry()
	i, found := next.Index(p.Name)
	if found {
		return 0, nameTaken(p.Name)
	}
	active := ""
	if removed.Active && next.Active == "" {
		active, next.Active = p.Name, p.Name
	}
	free := s.agents.unassigned(removed.Agents)
	change := domain.Change{
		Action: domain.ProjectRestored, Subject: p.Name, Detail: details(is("url", p.URL), is("active", active), was("agents", "", strings.Join(free, ", "))),
	}
	err = s.audit.change(ctx, change, func(ctx context.Context) error { return s.store.RestoreProject(ctx, active, p, free) })
	if err != nil {
		return 0, err
	}
	next.Projects = slices.Insert(slices.Clone(next.Projects), i, p)
	s.publish(next)
	for _, id := range free {
		s.agents.find(id).set(func(e *agentEntry) { e.assign(p.Name) })
	}
	return len(free), nil
}

func removalDetail(r domain.Removal) string {
	if r.Active {
		return "url: " + r.Project.URL + "; it was the active one"
	}
	return "url: " + r.Project.URL
}
