package service

import (
	"context"
	"slices"
	"time"

	"switchyard/internal/domain"
)

const (
	// maxUntold bounds how many arrivals wait to be told. Beyond it, as with a large new board, each gateway finds them by itself.
	maxUntold = 10_000
	// newsPause is the least time between two rounds of Run, arrivals or not: each may write.
	newsPause = 100 * time.Millisecond
)

// arrivals tell gateways of stories that a pipeline showed before any event did: by the time the gateway that saves stays fetches
// that pipeline, the story may have moved on. Stays.mu guards them.
type arrivals struct {
	untold   []domain.Arrival
	news     chan struct{}  // of capacity 1: there are untold ones
	position int64          // 0 before they were read
	seen     map[int64]bool // at the position: the same ones may come again
	taken    []int64        // to be marked when the stays are saved
}

// note queues the arrivals that a project's history has found. Callers hold mu.
func (a *arrivals) note(project string, arrived []domain.Arrival) {
	for _, each := range arrived[:min(len(arrived), max(0, maxUntold-len(a.untold)))] {
		each.Project = project
		a.untold = append(a.untold, each)
	}
	if len(a.untold) > 0 {
		select {
		case a.news <- struct{}{}:
		default:
		}
	}
}

// shareArrivals tells other gateways of the arrivals that this one found, and takes in those that they found.
func (s *Stays) shareArrivals(ctx context.Context) error {
	if s.changes == nil {
		return nil
	}
	s.mu.Lock()
	untold := s.arrivals.untold
	s.arrivals.untold = nil
	s.mu.Unlock()
	if len(untold) > 0 {
		if err := s.changes.TellArrivals(ctx, untold); err != nil {
			s.mu.Lock()
			s.arrivals.untold = slices.Concat(untold, s.arrivals.untold)
			s.mu.Unlock()
			return err
		}
	}
	s.mu.Lock()
	position, generation := s.arrivals.position, s.generation
	s.mu.Unlock()
	news, err := s.changes.ArrivalsSince(ctx, position)
	if err != nil {
		return err
	}
	projects := map[string]bool{}
	for _, a := range news.Arrivals {
		projects[a.Project] = true
	}
	if err := s.remember(ctx, projects); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.generation == generation && !s.stale {
		s.takeArrivals(news)
	}
	return nil
}

// takeArrivals takes in what gateways told, including this one. Callers hold mu.
func (s *Stays) takeArrivals(news domain.ArrivalNews) {
	a := &s.arrivals
	first, seen := a.position == 0, map[int64]bool{}
	for _, told := range news.Arrivals {
		seen[told.ID] = true
		if a.seen[told.ID] || first && told.Saved {
			continue
		}
		h := s.of(told.Project)
		before := h.Version()
		if h.Arrived(told.Arrival); h.Version() != before {
			s.markChanged(told.Project)
			s.names[storyID{told.Project, told.StoryID}] = told.StoryName
		}
		if s.saving && !told.Saved {
			a.taken = append(a.taken, told.ID)
		}
	}
	if news.Position < a.position { // a standby that lacks the last transactions took over
		news.Position = 0
	}
	a.position, a.seen = news.Position, seen
}

// arrivalsChanged returns a channel that is closed when other gateways tell of arrivals; nil where there are none.
func (s *Stays) arrivalsChanged() <-chan struct{} {
	if s.changes == nil {
		return nil
	}
	return s.changes.Changed(domain.TopicArrivals)
}
