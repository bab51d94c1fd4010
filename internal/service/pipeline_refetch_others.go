package service

import (
	"context"
	"time"

	"switchyard/internal/domain"
)

// othersInterval is how often the projects that other gateways follow are checked.
const othersInterval = time.Second

// others refetches pipelines on the gateway that saves stays, for projects whose feeds other gateways follow: it fetches
// those that have new events in the stream, and every project now and then. So a move without an event may be stored up to
// refetchInterval late.
type others struct {
	upTo  int64 // the last event that has been checked
	epoch int64 // of the duty to save stays at that time, 0 for none
}

// refetchOthers refetches changed projects that other gateways follow, if this one saves stays.
func (s *Pipelines) refetchOthers(ctx context.Context, o *others) error {
	duty, ours := dutyOf(s.duties, domain.DutyStays)
	if !ours {
		o.epoch = 0
		return nil
	}
	if o.epoch != duty.Epoch {
		o.epoch, o.upTo = duty.Epoch, s.events.LastID()
		s.refetchAll() // the gateway before may not have saved its last observations
	}
	news := map[string]bool{}
	for more := true; more; {
		page, err := s.events.Page(ctx, domain.EventQuery{After: o.upTo, Limit: 1000})
		if err != nil {
			return err
		}
		for _, e := range page.Events {
			news[e.Project], o.upTo = true, e.ID
		}
		more = page.More
	}
	for _, project := range s.projects.Registry().Projects {
		if _, followed := s.duties.Epoch(domain.FeedDuty(project.Name)); !followed {
			s.RefetchIfChanged(project, domain.FeedResult{News: news[project.Name]})
		}
	}
	return nil
}

// refetchAll schedules a background fetch of every pipeline.
func (s *Pipelines) refetchAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.setRegistry(s.projects.Registry())
	for _, state := range s.states {
		state.feed.at = time.Now()
		s.refetchLater(state)
	}
}
