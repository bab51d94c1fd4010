package service

import (
	"context"
	"strconv"
	"time"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
)

// AcknowledgeStuck is Acknowledge for all stuck stories that nobody takes care of yet. It returns their number and the time of
// the acknowledgement, with which ReopenStuck takes it back. It returns NotFound when there are none.
func (s *Alerts) AcknowledgeStuck(ctx context.Context, duration time.Duration) (n int, at time.Time, err error) {
	_, pipelines := s.pipelines.Recent(ctx, quietAge)
	now, alerts := clock.Now(), s.find(pipelines)
	s.acknowledge(alerts, pipelines, now) // what has ended is for the next List
	var all []domain.Acknowledgement
	for _, alert := range alerts {
		if alert.Kind == domain.AlertStuck && alert.Acknowledged == nil {
			all = append(all, newAcknowledgement(ctx, alert, now, duration))
		}
	}
	if len(all) == 0 {
		return 0, at, alertNotFound()
	}
	change := domain.Change{Action: domain.AlertAcknowledged, Subject: string(domain.AlertStuck), Detail: stuckStories(len(all))}
	return len(all), all[0].At, s.note(ctx, change, all...)
}

func stuckStories(n int) string { return strconv.Itoa(n) + " stuck stories" }

// ReopenStuck takes back what AcknowledgeStuck did at that time. It returns NotFound when nothing is left of it.
func (s *Alerts) ReopenStuck(ctx context.Context, at time.Time) error {
	if err := s.acknowledged.stored.refresh(ctx); err != nil {
		return err
	}
	s.acknowledged.change.Lock()
	defer s.acknowledged.change.Unlock()
	var all []domain.Acknowledgement
	s.acknowledged.mu.Lock()
	for key, a := range s.acknowledged.byKey {
		if domain.KindOfKey(key) == domain.AlertStuck && a.At.Equal(at) {
			all = append(all, a)
		}
	}
	s.acknowledged.mu.Unlock()
	if len(all) == 0 {
		return alertNotFound()
	}
	change := domain.Change{Action: domain.AlertReopened, Subject: string(domain.AlertStuck), Detail: stuckStories(len(all))}
	return s.takeBack(ctx, change, all...)
}
