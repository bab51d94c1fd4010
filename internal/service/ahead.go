package service

import (
	"sync"
	"time"

	"switchyard/internal/domain"
)

// AheadProject is a project whose feed holds stamps that are far ahead of the gateway's clock.
type AheadProject struct {
	Project string
	Since   time.Time // when that was noticed
}

// ahead is which projects' last reads held such stamps.
type ahead struct {
	mu    sync.Mutex
	since map[string]time.Time
}

// note takes account of a read.
func (a *ahead) note(read domain.FeedRead) {
	a.mu.Lock()
	defer a.mu.Unlock()
	project := read.Cursor.Project
	switch _, known := a.since[project]; {
	case read.Ahead.IsZero():
		delete(a.since, project)
	case !known:
		if a.since == nil {
			a.since = map[string]time.Time{}
		}
		a.since[project] = read.ReceivedAt
	}
}

// Ahead returns the projects whose clocks are ahead, in no particular order. Some may be removed.
func (s *Events) Ahead() []AheadProject {
	s.ahead.mu.Lock()
	defer s.ahead.mu.Unlock()
	var found []AheadProject
	for project, since := range s.ahead.since {
		found = append(found, AheadProject{project, since})
	}
	return found
}
