package service

import (
	"context"
	"time"

	"switchyard/internal/domain"
)

// othersInterval is how often the projects that other gateways follow are checked.
const othersInterval = time.Second

// others notices changes of pipelines for the gateway that saves stays while others follow the feeds: the stream shows which
// projects have events, and every project is asked now and then. So a move without an event may be stored up to noticeInterval
// late.
type others struct {
	upTo  int64 // the event up to which the stream was checked
	epoch int64 // under which stays were saved then, 0 for not
}

// noticeOthers notices the pipelines of projects that other gateways follow, if this one saves stays.
func (s *Pipelines) noticeOthers(ctx context.Context, o *others) error {
	duty, ours := dutyOf(s.duties, domain.DutyStays)
	if !ours {
		o.epoch = 0
		return nil
	}
	if o.epoch != duty.Epoch {
		o.epoch, o.upTo = duty.Epoch, s.events.LastID()
		s.fetchAll() // its predecessor may not have saved the last things that it saw
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
			s.Notice(project, domain.FeedResult{News: news[project.Name]})
		}
	}
	return nil
}

// fetchAll fetches every pipeline in the background.
func (s *Pipelines) fetchAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.setRegistry(s.projects.Registry())
	for _, state := range s.states {
		state.notices.at = time.Now()
		s.fetchLater(state)
	}
}
