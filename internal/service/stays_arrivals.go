package service

import (
	"context"
	"slices"
	"time"

	"switchyard/internal/domain"
)

const (
	// maxUnshared is how many arrivals wait to be shared. Beyond it, as with a large new board, each gateway finds them by itself.
	maxUnshared = 10_000
	// newsPause is the shortest time between two rounds of Run, since each may write.
	newsPause = 100 * time.Millisecond
)

// arrivals shares with other gateways the stories that were in a pipeline before any event was about them: when the gateway that
// saves stays fetches that pipeline, the story may have moved on. Stays.mu guards it.
type arrivals struct {
	unshared []domain.Arrival
	news     chan struct{}  // of capacity 1; holds a value when there are arrivals to share
	position int64          // 0 before the first read
	seen     map[int64]bool // ids at the position, which may be read again
	taken    []int64        // ids to be marked when the stays are saved
}

// note queues new arrivals of a project. The caller holds mu.
func (a *arrivals) note(project string, arrived []domain.Arrival) {
	for _, each := range arrived[:min(len(arrived), max(0, maxUnshared-len(a.unshared)))] {
		each.Project = project
		a.unshared = append(a.unshared, each)
	}
	if len(a.unshared) > 0 {
		select {
		case a.news <- struct{}{}:
		default:
		}
	}
}

// shareArrivals stores the arrivals that this gateway found, and applies those that others found.
func (s *Stays) shareArrivals(ctx context.Context) error {
	if s.changes == nil {
		return nil
	}
	s.mu.Lock()
	unshared := s.arrivals.unshared
	s.arrivals.unshared = nil
	s.mu.Unlock()
	if len(unshared) > 0 {
		if err := s.changes.ShareArrivals(ctx, unshared); err != nil {
			s.mu.Lock()
			s.arrivals.unshared = slices.Concat(unshared, s.arrivals.unshared)
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
	if s.generation == generation && !s.duty.stale {
		s.takeArrivals(news)
	}
	return nil
}

// takeArrivals applies arrivals found by any gateway, including this one. The caller holds mu.
func (s *Stays) takeArrivals(news domain.ArrivalNews) {
	a := &s.arrivals
	first, seen := a.position == 0, map[int64]bool{}
	for _, arrival := range news.Arrivals {
		seen[arrival.ID] = true
		if a.seen[arrival.ID] || first && arrival.Saved {
			continue
		}
		h := s.of(arrival.Project)
		before := h.Version()
		if h.Arrived(arrival.Arrival); h.Version() != before {
			s.markChanged(arrival.Project)
			s.names[storyID{arrival.Project, arrival.StoryID}] = arrival.StoryName
		}
		if s.duty.ours && !arrival.Saved {
			a.taken = append(a.taken, arrival.ID)
		}
	}
	if news.Position < a.position { // a standby database that lacks the last transactions has taken over
		news.Position = 0
	}
	a.position, a.seen = news.Position, seen
}

// arrivalsChanged returns a channel that is closed when other gateways share arrivals, nil if there are no other gateways.
func (s *Stays) arrivalsChanged() <-chan struct{} {
	if s.changes == nil {
		return nil
	}
	return s.changes.Changed(domain.TopicArrivals)
}
