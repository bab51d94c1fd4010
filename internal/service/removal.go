package service

import (
	"context"
	"crypto/rand"
	"slices"
	"strings"
	"time"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
)

// A removal can be undone for undoLife. The last maxRemovals are kept: each contains a token.
const (
	undoLife    = time.Hour
	maxRemovals = 32
)

// Remove removes a project and unassigns its agents. If it was the active project, none is active afterwards. Its
// events are kept. It returns NotFound.
func (s *Projects) Remove(ctx context.Context, name string) (removed domain.Removal, err error) {
	if err := refresh(ctx, s.reloader, s.agents.reloader); err != nil { // Restore must later restore what is stored now
		return removed, err
	}
	return change(ctx, s, func() (removed domain.Removal, err error) {
		next := *s.Registry()
		i, found := next.Index(name)
		if !found {
			return removed, projectNotFound(name)
		}
		s.agents.change.Lock() // the removal must not show before its agents are unassigned
		defer s.agents.change.Unlock()
		removed.Project = next.Projects[i]
		made := domain.Change{Action: domain.ProjectRemoved, Subject: name, Detail: "url: " + removed.Project.URL}
		if removed.Active = next.Active == name; removed.Active {
			next.Active = ""
			made.Detail += "; it was the active one"
		}
		next.Projects = slices.Delete(slices.Clone(next.Projects), i, i+1)
		err = s.commit(ctx, made, next, func(e *domain.AuditEntry) error { return s.store.RemoveProject(ctx, e, name) })
		if err != nil {
			return domain.Removal{}, err
		}
		s.access.endAgentTokens(func(t domain.NamedToken) bool { return t.Project == name })
		s.claims.drop(func(c domain.Claim) bool { return c.Project == name })
		removed.Agents = s.agents.keys(func(e *agentEntry) bool { return e.project() == name })
		s.agents.assign("", removed.Agents...)
		return removed, nil
	})
}

// Restore undoes a removal. It registers the project as it was, makes it active if it was and no other project is, and
// reassigns those of its agents that have no assignment now. It returns their number, or Conflict if the name has been
// taken.
func (s *Projects) Restore(ctx context.Context, removed domain.Removal) (agents int, err error) {
	if err := refresh(ctx, s.reloader, s.agents.reloader); err != nil {
		return 0, err
	}
	return change(ctx, s, func() (agents int, err error) {
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
		free := s.agents.withoutProject(removed.Agents)
		made := domain.Change{
			Action: domain.ProjectRestored, Subject: p.Name,
			Detail: details(valueOf("url", p.URL), valueOf("active", active), changeOf("agents", "", strings.Join(free, ", "))),
		}
		next.Projects = slices.Insert(slices.Clone(next.Projects), i, p)
		err = s.commit(ctx, made, next, func(e *domain.AuditEntry) error {
			return s.store.RestoreProject(ctx, e, active, p, free)
		})
		if err != nil {
			return 0, err
		}
		s.agents.assign(p.Name, free...)
		return len(free), nil
	})
}

// KeepRemoval keeps a removal for a limited time, so that it can be undone, and returns its id. A removal contains a
// token, so pages show only the id.
func (s *Projects) KeepRemoval(ctx context.Context, r domain.Removal) (id string, err error) {
	id = rand.Text()
	return id, s.store.KeepRemoval(ctx, id, r, clock.Now(), maxRemovals)
}

// UndoRemoval undoes the removal with this id, once. It returns NotFound if it can no longer be undone, and Conflict if
// the name has been taken.
func (s *Projects) UndoRemoval(ctx context.Context, id string) (r domain.Removal, agents int, err error) {
	if r, err = s.store.TakeRemoval(ctx, id, clock.Now().Add(-undoLife)); err != nil {
		return r, 0, notFound(err, "This can no longer be undone. Add the project again.")
	}
	agents, err = s.Restore(ctx, r)
	return r, agents, err
}
