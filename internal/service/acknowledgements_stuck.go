package service

import (
	"context"
	"strconv"
	"time"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
)

// AcknowledgeStuck acknowledges all stuck stories that have not been acknowledged. It returns their number and the time of the
// acknowledgement, with which ReopenStuck undoes it. It returns NotFound when there are none.
func (s *Alerts) AcknowledgeStuck(ctx context.Context, duration time.Duration) (n int, at time.Time, err error) {
	boards := s.pipelines.Boards(ctx, quietAge)
	now, alerts := clock.Now(), s.find(boards)
	s.acknowledge(alerts, boards.Pipelines, now) // the next List removes those that have ended
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

// ReopenStuck undoes an AcknowledgeStuck by its time. It returns NotFound when none of those acknowledgements is left.
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
