package service

import (
	"context"
	"time"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
)

// Deliveries returns the last attempts of an administrators' target, newest first. It returns NotFound.
func (s *Targets) Deliveries(ctx context.Context, id string, limit int) ([]domain.Delivery, error) {
	if _, err := s.Get(ctx, id); err != nil {
		return nil, err
	}
	return s.store.Deliveries(ctx, id, limit)
}

// Hours returns how many attempts of each target succeeded and failed in each hour since a time, oldest first. Two days
// are kept.
func (s *Targets) Hours(ctx context.Context, since time.Time) ([]domain.DeliveryHour, error) {
	return s.store.DeliveryHours(ctx, since)
}

// maxWaiting is up to how many waiting events are counted.
const maxWaiting = 1000

// Waiting returns how many messages wait for a target that is failing, as far as they are counted.
func (s *Targets) Waiting(ctx context.Context, t domain.Target) (n int, more bool, err error) {
	queued, err := s.store.CountQueued(ctx)
	if err != nil {
		return 0, false, err
	}
	n = queued[t.ID]
	if len(t.Rules.Events) == 0 {
		return n, false, nil
	}
	page, err := s.events.Page(ctx, domain.EventQuery{After: t.Progress.Position, Limit: maxWaiting})
	for _, e := range page.Events {
		if t.Rules.WantsEvent(e.Project, e.Type) {
			n++
		}
	}
	return n, page.More, err
}

// Digest returns what a target was told at once, and the events that it was about, oldest first, at most limit of them.
// It returns NotFound.
func (s *Targets) Digest(ctx context.Context, id string, limit int) (
	g domain.DigestRecord, events []domain.Event, err error,
) {
	if g, err = s.store.Digest(ctx, id); err != nil {
		if domain.CodeOf(err) == domain.NotFound {
			err = domain.Errorf(domain.NotFound, "there is no such digest")
		}
		return g, nil, err
	}
	if len(g.Rules.Events) == 0 {
		return g, nil, nil
	}
	for after := g.After; after < g.Upto && len(events) < limit; {
		page, err := s.events.Page(ctx, domain.EventQuery{After: after, Limit: 1000})
		if err != nil {
			return g, nil, err
		}
		if len(page.Events) == 0 {
			break
		}
		for _, e := range page.Events {
			after = e.ID
			if e.ID <= g.Upto && len(events) < limit && g.Rules.WantsEvent(e.Project, e.Type) {
				events = append(events, e)
			}
		}
	}
	return g, events, nil
}

// Digests returns the last digests of a target, newest first.
func (s *Targets) Digests(ctx context.Context, id string, limit int) ([]domain.DigestRecord, error) {
	return s.store.Digests(ctx, id, limit)
}

// failing returns the targets that fail as alerts.
func (s *Targets) failing() (found []domain.Alert) {
	now := clock.Now()
	for _, t := range *s.current.Load() {
		p := t.Progress
		a := domain.Alert{Kind: domain.AlertTarget, Target: t.ID, Agent: t.Name, Since: p.FailingAt}
		switch {
		case t.Owner != "":
			continue
		case p.Gone && !t.Enabled:
			a.Reason = "the receiver wants no more of them (410)"
		case !t.Enabled || p.FailingAt.IsZero() || now.Sub(p.FailingAt) < domain.FailingFor:
			continue
		}
		found = append(found, a)
	}
	return found
}
