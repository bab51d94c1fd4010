package service

import (
	"context"
	"maps"
	"sync"
	"time"

	"switchyard/internal/domain"
)

// AheadProject is a project whose feed has timestamps far ahead of the gateway's clock.
type AheadProject struct {
	Project string
	Since   time.Time // when that was noticed
}

// ahead keeps the projects whose last read had such timestamps.
type ahead struct {
	changes Changes // nil if no other gateway shares the store

	mu       sync.Mutex
	since    map[string]time.Time
	unshared map[string]bool // projects whose entry in since has not been shared with other gateways yet
}

// note records what a read shows.
func (a *ahead) note(read domain.FeedRead) {
	a.mu.Lock()
	defer a.mu.Unlock()
	project := read.Cursor.Project
	_, known := a.since[project]
	if known == !read.Ahead.IsZero() {
		return
	}
	if a.since == nil {
		a.since, a.unshared = map[string]time.Time{}, map[string]bool{}
	}
	if known {
		delete(a.since, project)
	} else {
		a.since[project] = read.ReceivedAt
	}
	if a.changes != nil {
		a.unshared[project] = true
	}
}

// share exchanges the entries with other gateways.
func (a *ahead) share(ctx context.Context) error {
	if a.changes == nil {
		return nil
	}
	a.mu.Lock()
	unshared, since := maps.Clone(a.unshared), maps.Clone(a.since)
	a.mu.Unlock()
	for project := range unshared {
		if err := a.changes.SetClockAhead(ctx, project, since[project]); err != nil {
			return err
		}
	}
	stored, err := a.changes.ClocksAhead(ctx)
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for project := range unshared {
		if a.since[project].Equal(since[project]) {
			delete(a.unshared, project)
		}
	}
	for project := range a.unshared { // entries that have changed in the meantime
		delete(stored, project)
		if at, is := a.since[project]; is {
			stored[project] = at
		}
	}
	a.since = stored
	if a.unshared == nil {
		a.unshared = map[string]bool{}
	}
	return nil
}

// Ahead returns the projects whose clocks are ahead, in no particular order. Some may have been removed.
func (s *Events) Ahead() []AheadProject {
	s.ahead.mu.Lock()
	defer s.ahead.mu.Unlock()
	var found []AheadProject
	for project, since := range s.ahead.since {
		found = append(found, AheadProject{project, since})
	}
	return found
}
