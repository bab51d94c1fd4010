package service

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"time"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
)

type acknowledgementStore interface {
	Acknowledgements(ctx context.Context) ([]domain.Acknowledgement, error)
	Acknowledge(ctx context.Context, e *domain.AuditEntry, all ...domain.Acknowledgement) error
	EndAcknowledgements(ctx context.Context, e *domain.AuditEntry, ended ...domain.Acknowledgement) error
}

// loadAcknowledgements brings memory up to date with the store.
func (s *Alerts) loadAcknowledgements(ctx context.Context) error {
	s.change.Lock()
	defer s.change.Unlock()
	stored, err := s.store.Acknowledgements(ctx)
	if err != nil {
		return err
	}
	byKey := make(map[string]domain.Acknowledgement, len(stored))
	for _, a := range stored {
		byKey[a.Key] = a
	}
	if known := s.acknowledged.Load(); known == nil || !maps.Equal(*known, byKey) {
		s.acknowledged.Store(&byKey)
	}
	return nil
}

func (s *Alerts) edit(change func(byKey map[string]domain.Acknowledgement)) {
	for {
		known := s.acknowledged.Load()
		next := maps.Clone(*known)
		change(next)
		if s.acknowledged.CompareAndSwap(known, &next) {
			return
		}
	}
}

// drop removes ended acknowledgements from memory, unless newer ones have replaced them.
func (s *Alerts) drop(ended []domain.Acknowledgement) {
	s.edit(func(byKey map[string]domain.Acknowledgement) {
		for _, a := range ended {
			if byKey[a.Key] == a {
				delete(byKey, a.Key)
			}
		}
	})
}

// Acknowledge records that somebody is taking care of an alert, for the given duration, or, if it is 0, until the alert
// ends or changes. It returns NotFound when there is no alert with that key.
func (s *Alerts) Acknowledge(ctx context.Context, key string, duration time.Duration) error {
	for _, alert := range s.find(s.pipelines.Boards(ctx, quietAge)) {
		if alert.Key() == key {
			a := newAcknowledgement(ctx, alert, clock.Now(), duration)
			change := domain.Change{Action: domain.AlertAcknowledged, Subject: key, Detail: a.Text, Project: alert.Project}
			return s.add(ctx, change, a)
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

// add stores acknowledgements that are made together, as one change.
func (s *Alerts) add(ctx context.Context, change domain.Change, all ...domain.Acknowledgement) error {
	if until := all[0].Until; !until.IsZero() {
		change.Detail = details("until: "+exactTime(until), change.Detail)
	}
	s.change.Lock()
	defer s.change.Unlock()
	err := s.audit.change(ctx, change, func(e *domain.AuditEntry) error { return s.store.Acknowledge(ctx, e, all...) })
	if err != nil {
		return err
	}
	s.edit(func(byKey map[string]domain.Acknowledgement) {
		for _, a := range all {
			byKey[a.Key] = a
		}
	})
	return nil
}

// Reopen removes an acknowledgement. It returns NotFound when there is neither an alert nor an acknowledgement with
// that key.
func (s *Alerts) Reopen(ctx context.Context, key string) error {
	if err := s.stored.refresh(ctx); err != nil {
		return err
	}
	s.change.Lock()
	defer s.change.Unlock()
	a, known := (*s.acknowledged.Load())[key]
	if !known {
		isIt := func(alert domain.Alert) bool { return alert.Key() == key }
		if slices.ContainsFunc(s.find(s.pipelines.Boards(ctx, quietAge)), isIt) {
			return nil
		}
		return alertNotFound()
	}
	change := domain.Change{
		Action: domain.AlertReopened, Subject: key, Detail: details("acknowledged by "+a.By, a.Text), Project: a.Project,
	}
	return s.takeBack(ctx, change, a)
}

// takeBack ends acknowledgements, as one change. The caller holds change.
func (s *Alerts) takeBack(ctx context.Context, change domain.Change, all ...domain.Acknowledgement) error {
	err := s.audit.change(ctx, change, func(e *domain.AuditEntry) error {
		return s.store.EndAcknowledgements(ctx, e, all...)
	})
	if err != nil {
		return err
	}
	s.drop(all)
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
	return len(all), all[0].At, s.add(ctx, change, all...)
}

func stuckStories(n int) string { return strconv.Itoa(n) + " stuck stories" }

// ReopenStuck undoes an AcknowledgeStuck by its time. It returns NotFound when none of those acknowledgements is left.
func (s *Alerts) ReopenStuck(ctx context.Context, at time.Time) error {
	if err := s.stored.refresh(ctx); err != nil {
		return err
	}
	s.change.Lock()
	defer s.change.Unlock()
	var all []domain.Acknowledgement
	for key, a := range *s.acknowledged.Load() {
		if domain.KindOfKey(key) == domain.AlertStuck && a.At.Equal(at) {
			all = append(all, a)
		}
	}
	if len(all) == 0 {
		return alertNotFound()
	}
	change := domain.Change{
		Action: domain.AlertReopened, Subject: string(domain.AlertStuck), Detail: stuckStories(len(all)),
	}
	return s.takeBack(ctx, change, all...)
}
