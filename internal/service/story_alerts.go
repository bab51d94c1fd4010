package service

import (
	"sync"
	"time"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
)

// storyAlerts caches the alerts that were last found in pipelines: with ten thousand projects they are searched again only when
// something has changed (BenchmarkSnapshot).
type storyAlerts struct {
	stays *Stays

	mu        sync.Mutex
	pipelines []domain.ProjectPipeline
	revision  uint64 // of stays
	until     time.Time
	found     []domain.Alert
}

// find returns what needs attention in pipelines. Nobody may change it; when nothing has changed it is the same array as last
// time.
func (s *storyAlerts) find(pipelines []domain.ProjectPipeline) []domain.Alert {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := clock.Now()
	if revision := s.stays.revisionNow(); revision != s.revision || !isSame(pipelines, s.pipelines) || !now.Before(s.until) {
		s.pipelines, s.revision = pipelines, revision
		s.stays.withLimits(func(limit domain.StuckLimit) { s.found, s.until = domain.FindAlertsUntil(pipelines, limit, now) })
	}
	return s.found
}

// isSame reports whether both slices share one array.
func isSame[T any](a, b []T) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }
