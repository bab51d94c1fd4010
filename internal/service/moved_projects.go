package service

import (
	"sync"
	"time"

	"switchyard/internal/domain"
)

// movedProjects keeps recent changes of projects' addresses, which an agent that another gateway answered last may not
// know.
type movedProjects struct {
	mu sync.Mutex
	at map[string]time.Time // by name
}

// movedLife is longer than the time between two heartbeats.
const movedLife = 10 * time.Minute

// note records what a new registry changes.
func (m *movedProjects) note(before, now *domain.Registry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, at := range m.at {
		if time.Since(at) > movedLife {
			delete(m.at, name)
		}
	}
	for _, p := range now.Projects {
		if old, known := before.Find(p.Name); known && old.URL != p.URL {
			if m.at == nil {
				m.at = map[string]time.Time{}
			}
			m.at[p.Name] = time.Now()
		}
	}
}

// within reports whether the project's address changed within d.
func (m *movedProjects) within(name string, d time.Duration) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	at, known := m.at[name]
	return known && time.Since(at) <= d
}
