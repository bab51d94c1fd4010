package service

import (
	"context"
	"slices"
	"strings"
	"time"

	"switchyard/internal/domain"
)

// Deliveries is the record of the messages sent to targets.
type Deliveries struct {
	targets   *Targets
	questions *Questions
}

// List returns the last attempts for an administrators' target, newest first. It returns NotFound.
func (s Deliveries) List(ctx context.Context, id string, limit int) ([]domain.Delivery, error) {
	if _, err := s.targets.Get(ctx, id); err != nil {
		return nil, err
	}
	return s.targets.store.Deliveries(ctx, id, limit)
}

// Hours returns how many attempts for each target succeeded and failed in each hour since a time, oldest first. Two
// days are kept.
func (s Deliveries) Hours(ctx context.Context, since time.Time) ([]domain.DeliveryHour, error) {
	return s.targets.store.DeliveryHours(ctx, since)
}

// maxWaiting is the number up to which waiting events are counted.
const maxWaiting = 1000

// Waiting returns how many messages wait for each of these targets that is failing, up to the limit; more has those for
// which there may be others.
func (s Deliveries) Waiting(ctx context.Context, targets []domain.Target) (
	waiting map[string]int, more map[string]bool, err error,
) {
	targets = slices.DeleteFunc(slices.Clone(targets), func(t domain.Target) bool { return !t.Failing() })
	if len(targets) == 0 {
		return nil, nil, nil
	}
	if waiting, err = s.targets.store.CountQueued(ctx); err != nil {
		return nil, nil, err
	}
	more = map[string]bool{}
	for _, t := range targets {
		if len(t.Rules.Events) == 0 {
			continue
		}
		page, err := s.targets.events.Page(ctx, domain.EventQuery{After: t.Progress.Position, Limit: maxWaiting})
		if err != nil {
			return nil, nil, err
		}
		for _, e := range page.Events {
			if t.Rules.WantsEvent(e, s.targets.pipelines.Finishes) {
				waiting[t.ID]++
			}
		}
		more[t.ID] = page.More
	}
	return waiting, more, nil
}

// Digest returns what a target was told at once, and the events it was about, oldest first, at most limit of them, with
// who caused them. It returns NotFound.
func (s Deliveries) Digest(ctx context.Context, id string, limit int) (
	g domain.DigestRecord, past []domain.PastEvent, err error,
) {
	var events []domain.Event
	if g, err = s.targets.store.Digest(ctx, id); err != nil || len(g.Rules.Events) == 0 {
		return g, nil, notFound(err, "there is no such digest")
	}
	for e, err := range domain.EventsBetween(ctx, s.targets.events.Page, g.After, g.Upto) {
		if err != nil {
			return g, nil, err
		}
		if g.Rules.WantsEvent(e, s.targets.pipelines.Finishes) {
			events = append(events, e)
		}
		if len(events) >= limit {
			break
		}
	}
	past, err = s.targets.events.WithAuthors(ctx, events)
	return g, past, err
}

const (
	// usualDigests is how many digests determine what is usual, and fewestDigests how many are needed.
	usualDigests, fewestDigests = 14, 5
)

// DigestDelivery returns the last attempt to send a digest, nil if it is no longer kept.
func (s Deliveries) DigestDelivery(ctx context.Context, g domain.DigestRecord) (*domain.Delivery, error) {
	list, err := s.targets.store.Deliveries(ctx, g.Target, domain.MaxDeliveries)
	for _, d := range list {
		if d.At.Before(g.At) {
			break // the rest are of earlier digests
		}
		if strings.HasSuffix(d.MessageID, "_"+digestID(g.Upto)) ||
			strings.HasSuffix(d.MessageID, "_"+alertsID(g.Upto, g.At)) {
			return &d, err
		}
	}
	return nil, err
}

// Usual returns the median number of stories finished in the last digests before one that were made by the same rules,
// and the number of these digests, 0 if too few.
func (s Deliveries) Usual(ctx context.Context, g domain.DigestRecord) (finished, digests int, err error) {
	isMove := func(t domain.EventType) bool { return t == domain.StageTransition || t == domain.Finished }
	if !slices.ContainsFunc(g.Rules.Events, isMove) {
		return 0, 0, nil
	}
	before, err := s.targets.store.Digests(ctx, g.Target, g.At, usualDigests)
	var counts []int
	for _, other := range before {
		if other.Span == g.Span && slices.Equal(other.Rules.Projects, g.Rules.Projects) &&
			slices.ContainsFunc(other.Rules.Events, isMove) {
			counts = append(counts, other.Counts[domain.FinishedCount])
		}
	}
	if err != nil || len(counts) < fewestDigests {
		return 0, 0, err
	}
	slices.Sort(counts)
	return counts[len(counts)/2], len(counts), nil
}

// LastDigest returns the last digest of a target before a time, nil if there is none.
func (s Deliveries) LastDigest(ctx context.Context, id string, before time.Time) (*domain.DigestRecord, error) {
	found, err := s.targets.store.Digests(ctx, id, before, 1)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0], nil
}
