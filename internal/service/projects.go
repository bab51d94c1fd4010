package service

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"switchyard/internal/domain"
)

// Projects is the registry, in memory and written through to the store. Readers take a snapshot without locking.
type Projects struct {
	store    *database
	audit    *Audit
	agents   *agentTable // removing a project unassigns its agents
	access   *Access     // and ends the tokens of their commands
	claims   *claimTable
	reloader *reloader

	// mu makes checking, storing and publishing atomic. Hold it for reading while no project may be removed.
	mu      sync.RWMutex
	moved   map[string]time.Time // for the next snapshot
	current atomic.Pointer[registrySnapshot]
}

type registrySnapshot struct {
	domain.Registry
	moved    map[string]time.Time // when other gateways have changed projects' addresses, by name
	outdated chan struct{}        // closed when a newer snapshot is published
}

// publish makes next the registry and wakes those who wait for a change. The caller holds mu.
func (s *Projects) publish(next domain.Registry) {
	old := s.current.Load()
	next.Version = old.Version + 1
	s.current.Store(&registrySnapshot{next, s.moved, make(chan struct{})})
	close(old.outdated)
}

func (s *Projects) load(ctx context.Context) error {
	s.mu.Lock() // so that a change of our own is in both or neither
	defer s.mu.Unlock()
	active, projects, err := s.store.Registry(ctx)
	if err != nil {
		return err
	}
	known := s.current.Load()
	if known.Active == active && slices.Equal(known.Projects, projects) {
		return nil
	}
	s.moved = maps.Clone(s.moved)
	for _, p := range projects {
		if old, found := known.Find(p.Name); found && old.URL != p.URL {
			s.moved[p.Name] = time.Now()
		}
	}
	s.publish(domain.Registry{Active: active, Projects: projects})
	return nil
}

func change[T any](ctx context.Context, s *Projects, change func() (T, error)) (T, error) {
	return retry(ctx, func() (T, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		return change()
	}, s.reloader)
}

// Registry returns the current registry. It is shared and must not be changed.
func (s *Projects) Registry() *domain.Registry { return &s.current.Load().Registry }

// Changed returns a channel that is closed at the next change. Call it before Registry.
func (s *Projects) Changed() <-chan struct{} { return s.current.Load().outdated }

// Add registers a project. It trims name and url; a nil token is none. It returns Conflict for a name that is taken,
// even if the url is invalid, and otherwise Invalid.
func (s *Projects) Add(ctx context.Context, name, url string, token *domain.Secret) (domain.Project, error) {
	return change(ctx, s, func() (domain.Project, error) { return s.add(ctx, name, url, token) })
}

// Update changes a project's url, and its token unless that is nil; "" removes the token. If the url has another origin
// and token is nil, the stored token is removed, since it was meant for the old server. It returns Invalid and
// NotFound.
func (s *Projects) Update(ctx context.Context, name, url string, token *domain.Secret) (p domain.Project, err error) {
	if err := s.reloader.refresh(ctx); err != nil { // values that do not change must be the stored ones
		return p, err
	}
	return change(ctx, s, func() (domain.Project, error) { return s.update(ctx, name, url, token) })
}

// Ensure adds a project or, if the name exists, changes it as Update does.
func (s *Projects) Ensure(ctx context.Context, name, url string, token *domain.Secret) (p domain.Project, err error) {
	if err := s.reloader.refresh(ctx); err != nil {
		return p, err
	}
	name = strings.TrimSpace(name)
	return change(ctx, s, func() (domain.Project, error) {
		if _, found := s.Registry().Find(name); found {
			return s.update(ctx, name, url, token)
		}
		return s.add(ctx, name, url, token)
	})
}

// Seed registers projects without tokens, all or none, and makes the first the active one. It does nothing unless the
// registry is empty.
func (s *Projects) Seed(ctx context.Context, projects []domain.Project) error {
	_, err := change(ctx, s, func() (any, error) { return nil, s.seed(ctx, projects) })
	return err
}

func (s *Projects) seed(ctx context.Context, projects []domain.Project) error {
	if len(projects) == 0 || len(s.Registry().Projects) > 0 {
		return nil
	}
	var next domain.Registry
	for _, p := range projects {
		seed, err := domain.NewProject(p.Name, p.URL)
		if err != nil {
			return err
		}
		next.Projects = append(next.Projects, seed)
	}
	next.Active = next.Projects[0].Name
	slices.SortFunc(next.Projects, func(a, b domain.Project) int { return strings.Compare(a.Name, b.Name) })
	var names []string
	for i, p := range next.Projects {
		if i > 0 && p.Name == names[i-1] {
			return nameTaken(p.Name)
		}
		names = append(names, p.Name)
	}
	change := domain.Change{
		Action: domain.ProjectAdded, Subject: strings.Join(names, ", "),
		Detail: "from the configuration; active: " + next.Active,
	}
	return s.commit(ctx, change, next, func(e *domain.AuditEntry) error {
		return s.store.AddProjects(ctx, e, next.Active, next.Projects...)
	})
}

func (s *Projects) commit(
	ctx context.Context, change domain.Change, next domain.Registry, write func(*domain.AuditEntry) error,
) error {
	return s.audit.change(ctx, change, write, func() { s.publish(next) })
}

// Switch makes a project the active one. It returns NotFound.
func (s *Projects) Switch(ctx context.Context, name string) error {
	_, err := change(ctx, s, func() (any, error) {
		next := *s.Registry()
		if _, found := next.Find(name); !found {
			return nil, projectNotFound(name)
		}
		made := domain.Change{
			Action: domain.ProjectSwitched, Subject: name, Detail: "active: " + orNone(next.Active) + " → " + name,
		}
		next.Active = name
		return nil, s.commit(ctx, made, next, func(e *domain.AuditEntry) error { return s.store.SetActive(ctx, e, name) })
	})
	return err
}

func (s *Projects) add(ctx context.Context, name, url string, token *domain.Secret) (domain.Project, error) {
	next := *s.Registry()
	i, found := next.Index(strings.TrimSpace(name))
	if found {
		return domain.Project{}, nameTaken(next.Projects[i].Name)
	}
	p, err := newProject(name, url, token)
	if err != nil {
		return domain.Project{}, err
	}
	change := domain.Change{
		Action: domain.ProjectAdded, Subject: p.Name,
		Detail: details(valueOf("url", p.URL), secretChange("token", "", p.Token)),
	}
	next.Projects = slices.Insert(slices.Clone(next.Projects), i, p)
	return p, s.commit(ctx, change, next, func(e *domain.AuditEntry) error { return s.store.AddProjects(ctx, e, "", p) })
}

func (s *Projects) update(ctx context.Context, name, url string, token *domain.Secret) (domain.Project, error) {
	next := *s.Registry()
	i, found := next.Index(name)
	if !found {
		return domain.Project{}, projectNotFound(name)
	}
	old := next.Projects[i]
	p, err := newProject(name, url, token)
	if err != nil {
		return p, err
	}
	if token == nil && p.SameOrigin(old) {
		p.Token = old.Token
	}
	if p == old {
		return p, nil
	}
	change := domain.Change{
		Action: domain.ProjectChanged, Subject: name,
		Detail: details(changeOf("url", old.URL, p.URL), secretChange("token", old.Token, p.Token)),
	}
	next.Projects = slices.Clone(next.Projects)
	next.Projects[i] = p
	return p, s.commit(ctx, change, next, func(e *domain.AuditEntry) error {
		return s.store.UpdateProject(ctx, e, old, p)
	})
}

func newProject(name, url string, token *domain.Secret) (domain.Project, error) {
	p, err := domain.NewProject(name, url)
	if err != nil || token == nil {
		return p, err
	}
	p.Token = *token
	return p, domain.CheckProjectToken(p.Token)
}

func nameTaken(name string) error {
	return domain.Errorf(domain.Conflict, "project '%s' already exists", name)
}

func projectNotFound(name string) error {
	return domain.Errorf(domain.NotFound, "project '%s' does not exist", name)
}
