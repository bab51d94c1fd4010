package service

import (
	"slices"
	"sync"
	"time"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
)

// storyAlerts caches the alerts found in pipelines. With ten thousand projects, only those that have changed are searched again
// (BenchmarkSnapshot).
type storyAlerts struct {
	stays *Stays

	mu        sync.Mutex
	pipelines []domain.ProjectPipeline
	revision  uint64 // of stays
	until     time.Time
	projects  []projectAlerts // of pipelines, in their order
	found     []domain.Alert  // in all of them
}

// projectAlerts are those of one project. They are valid until a certain time, unless its pipeline or history changes.
type projectAlerts struct {
	version uint64 // of its history
	until   time.Time
	found   []domain.Alert
}

// find returns what needs attention in pipelines. The result must not be changed. If nothing has changed it is the same slice as
// the last time.
func (s *storyAlerts) find(pipelines []domain.ProjectPipeline) []domain.Alert {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := clock.Now()
	if revision := s.stays.revisionNow(); revision != s.revision || !domain.SameArray(pipelines, s.pipelines) || !now.Before(s.until) {
		s.findChanged(pipelines, now)
		s.revision = revision
	}
	return s.found
}

// findChanged searches the projects that have changed or whose alerts are no longer valid. The caller holds mu.
func (s *storyAlerts) findChanged(pipelines []domain.ProjectPipeline, now time.Time) {
	same := domain.SameArray(pipelines, s.pipelines)
	projects, count := make([]projectAlerts, len(pipelines)), 0
	s.stays.withLimits(func(limit domain.StuckLimit) {
		for i := range pipelines {
			version := s.stays.version(pipelines[i].Project)
			if i < len(s.pipelines) && s.projects[i].version == version && now.Before(s.projects[i].until) &&
				(same || s.pipelines[i].ShowsSame(pipelines[i])) {
				projects[i] = s.projects[i]
			} else {
				projects[i].version = version
				projects[i].found, projects[i].until = domain.FindAlertsUntil(pipelines[i:i+1], limit, now)
			}
			if i == 0 || projects[i].until.Before(s.until) {
				s.until = projects[i].until
			}
			count += len(projects[i].found)
		}
	})
	found := make([]domain.Alert, 0, count)
	for i := range projects {
		found = append(found, projects[i].found...)
	}
	s.pipelines, s.projects = pipelines, projects
	if !slices.Equal(found, s.found) {
		s.found = found
	}
}
