package service

import (
	"context"
	"maps"
	"strconv"
	"sync"
	"time"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
)

type acknowledgementStore interface {
	Acknowledgements(ctx context.Context) ([]domain.Acknowledgement, error)
	Acknowledge(ctx context.Context, e *domain.AuditEntry, all ...domain.Acknowledgement) error
	EndAcknowledgements(ctx context.Context, e *domain.AuditEntry, ended ...domain.Acknowledgement) error
}

// acknowledgements mirrors in memory the stored acknowledgements that have not ended.
type acknowledgements struct {
	stored *reloader
	// change is held while store and memory are changed, so that the two agree. It is never taken while holding mu.
	change sync.Mutex

	mu    sync.Mutex
	byKey map[string]domain.Acknowledgement
}

// find returns the acknowledgement of an alert, nil if there is none.
func (a *acknowledgements) find(key string) *domain.Acknowledgement {
	a.mu.Lock()
	defer a.mu.Unlock()
	if found, known := a.byKey[key]; known {
		return &found
	}
	return nil
}

func loadAcknowledgements(ctx context.Context, store acknowledgementStore) (*acknowledgements, error) {
	a := &acknowledgements{}
	_, err := a.load(ctx, store)
	return a, err
}

// load brings memory up to date with the store. It reports whether anything has changed.
func (a *acknowledgements) load(ctx context.Context, store acknowledgementStore) (changed bool, err error) {
	a.change.Lock()
	defer a.change.Unlock()
	stored, err := store.Acknowledgements(ctx)
	if err != nil {
		return false, err
	}
	byKey := make(map[string]domain.Acknowledgement, len(stored))
	for _, one := range stored {
		byKey[one.Key] = one
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	changed = !maps.Equal(a.byKey, byKey)
	a.byKey = byKey
	return changed, nil
}

// Acknowledge records that somebody is taking care of an alert, for the given duration, or, if it is 0, until the alert
// ends or changes. It returns NotFound when there is no alert with that key.
func (s *Alerts) Acknowledge(ctx context.Context, key string, duration time.Duration) error {
	boards := s.pipelines.Boards(ctx, quietAge)
	for _, alert := range s.find(boards) {
		if alert.Key() == key {
			a := newAcknowledgement(ctx, alert, clock.Now(), duration)
			change := domain.Change{Action: domain.AlertAcknowledged, Subject: key, Detail: a.Text, Project: alert.Project}
			return s.note(ctx, change, a)
		}
	}
	return alertNotFound()
}

func newAcknowledgement(
	ctx context.Context, alert domain.Alert, now time.Time, duration time.Duration,
) domain.Acknowledgement {
	a := domain.Acknowledgement{
		Key: alert.Key(), Project: alert.Project, Text: alert.Text(), By: domain.CutText(domain.ActorOf(ctx).Who),
		At:    now.Truncate(time.Millisecond),
		Since: alert.Since,
	}
	if duration > 0 {
		// Not from the truncated time, from which "until 8:00" would end early.
		a.Until = now.Add(duration).Truncate(time.Millisecond)
	}
	return a
}

// note stores acknowledgements that are made together, as one change.
func (s *Alerts) note(ctx context.Context, change domain.Change, all ...domain.Acknowledgement) error {
	if until := all[0].Until; !until.IsZero() {
		change.Detail = details("until: "+exactTime(until), change.Detail)
	}
	s.acknowledged.change.Lock()
	defer s.acknowledged.change.Unlock()
	err := s.audit.change(ctx, change, func(e *domain.AuditEntry) error { return s.store.Acknowledge(ctx, e, all...) })
	if err != nil {
		return err
	}
	s.acknowledged.mu.Lock()
	defer s.acknowledged.mu.Unlock()
	for _, a := range all {
		s.acknowledged.byKey[a.Key] = a
	}
	s.changed.Add(1)
	return nil
}

// Reopen removes an acknowledgement. It returns NotFound when there is neither an alert nor an acknowledgement with
// that key.
func (s *Alerts) Reopen(ctx context.Context, key string) error {
	if err := s.acknowledged.stored.refresh(ctx); err != nil {
		return err
	}
	s.acknowledged.change.Lock()
	defer s.acknowledged.change.Unlock()
	s.acknowledged.mu.Lock()
	a, known := s.acknowledged.byKey[key]
	s.acknowledged.mu.Unlock()
	if !known {
		boards := s.pipelines.Boards(ctx, quietAge)
		for _, alert := range s.find(boards) {
			if alert.Key() == key {
				return nil
			}
		}
		return alertNotFound()
	}
	change := domain.Change{
		Action: domain.AlertReopened, Subject: key, Detail: details("acknowledged by "+a.By, a.Text), Project: a.Project,
	}
	return s.takeBack(ctx, change, a)
}

// takeBack ends acknowledgements, as one change. The caller holds acknowledged.change.
func (s *Alerts) takeBack(ctx context.Context, change domain.Change, all ...domain.Acknowledgement) error {
	err := s.audit.change(ctx, change, func(e *domain.AuditEntry) error {
		return s.store.EndAcknowledgements(ctx, e, all...)
	})
	if err != nil {
		return err
	}
	s.drop(all...)
	return nil
}

func alertNotFound() error { return domain.Errorf(domain.NotFound, "no alert has this key") }

// AcknowledgeStuck acknowledges all stuck stories that have not been acknowledged. It returns their number and the time
// of the acknowledgement, with which ReopenStuck undoes it. It returns NotFound when there are none.
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
	change := domain.Change{
		Action: domain.AlertAcknowledged, Subject: string(domain.AlertStuck), Detail: stuckStories(len(all)),
	}
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
	change := domain.Change{
		Action: domain.AlertReopened, Subject: string(domain.AlertStuck), Detail: stuckStories(len(all)),
	}
	return s.takeBack(ctx, change, all...)
}
