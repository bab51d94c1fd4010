package service

import (
	"sync"
	"time"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
)

// storyAlerts keeps what was found in pipelines last: with ten thousand projects that is looked for again only when something
// has changed (BenchmarkSnapshot).
type storyAlerts struct {
	stays *Stays

	mu        sync.Mutex
	pipelines []domain.ProjectPipeline
	revision  uint64 // of stays
	until     time.Time
	found     []domain.Alert
}

// find returns what needs attention in pipelines. Nobody may change it; it is the same array as the last time when nothing has
// changed.
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

// isSame reports whether both are the same array.
func isSame[T any](a, b []T) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }
