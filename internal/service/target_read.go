package service

import (
	"context"
	"slices"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
)

// targetReader is how far a target has read the stream, ahead of what it has been told.
type targetReader struct {
	upto int64 // the last event read
	more bool  // later ones may concern it
	gap  bool  // it has been told that events are missing while it catches up
	// events wait to be told singly. For a digest they are counted in counts instead, which is nil otherwise.
	events []domain.Event
	counts map[string]int
}

// read starts reading again from the target's position, for a digest unless counts is nil.
func (r *targetState) read(counts map[string]int) {
	r.stream = targetReader{upto: r.Progress.Position, more: true, gap: r.stream.gap, counts: counts}
}

// isPast reports whether what is told after the events up to an id need no longer wait for them.
func (s *targetReader) isPast(after int64) bool {
	if len(s.events) > 0 {
		return after < s.events[0].ID
	}
	return !s.more || s.upto >= after
}

// scan marks the targets that new events concern, and moves the others past them.
func (d *deliverer) scan(ctx context.Context) error {
	for last := d.events.LastID(); d.scanned < last; {
		page, err := d.events.Page(ctx, domain.EventQuery{After: d.scanned, Limit: 1000})
		if err != nil {
			return err
		}
		if len(page.Events) == 0 {
			d.scanned = last
			break
		}
		d.scanned = page.Events[len(page.Events)-1].ID
		counted := map[int64]string{}
		for _, r := range d.targets {
			s := &r.stream
			wants := func(e domain.Event) bool { return r.Rules.WantsEvent(e, d.pipelines.Finishes) }
			switch {
			case s.more:
			case s.counts != nil:
				for _, e := range page.Events {
					if e.ID <= s.upto || !wants(e) {
						continue
					}
					if counted[e.ID] == "" {
						counted[e.ID] = d.countOf(e)
					}
					s.counts[counted[e.ID]]++
				}
				s.upto = max(s.upto, d.scanned)
			case slices.ContainsFunc(page.Events, wants):
				s.more = true
			case len(s.events) == 0:
				s.upto = max(s.upto, d.scanned)
				r.Progress.Position = s.upto
			}
		}
	}
	return nil
}

// readOn reads on for a target until enough events wait for a digest, or there are no more, but no longer than other
// targets can wait.
func (d *deliverer) readOn(ctx context.Context, r *targetState) error {
	s := &r.stream
	for n := 0; s.more && n < targetPages && len(s.events) <= maxHeap; n++ {
		page, err := d.page(ctx, r)
		switch {
		case err != nil:
			return err
		case s.counts == nil:
			s.events = append(s.events, page...)
			continue
		}
		for _, e := range page {
			s.counts[d.countOf(e)]++
		}
	}
	if len(s.events)+len(s.counts) == 0 { // nothing to tell so far
		r.Progress.Position = s.upto
	}
	return nil
}

// page reads on for a target, and returns those of the next events that concern it. If earlier ones are no longer kept,
// the target is told, once until it has caught up.
func (d *deliverer) page(ctx context.Context, r *targetState) ([]domain.Event, error) {
	s := &r.stream
	if len(r.Rules.Events) == 0 {
		s.upto, s.more = d.scanned, false
		return nil, nil
	}
	page, err := d.events.Page(ctx, domain.EventQuery{After: s.upto, Limit: targetPage, Bytes: targetBytes})
	if err != nil {
		return nil, err
	}
	if len(page.Events) == 0 {
		s.more, s.gap = false, false
		return nil, nil
	}
	if first := page.Events[0]; first.ID > s.upto+1 && !s.gap {
		s.gap = true
		save := d.saveOf(r)
		m := d.gap(&r.Target, first.ID, first.ID-s.upto-1, clock.Now())
		save.Queued = []domain.QueuedMessage{{After: s.upto, Message: m}}
		if len(s.events) == 0 && s.counts == nil {
			r.Progress.Position, save.Progress.Position = first.ID-1, first.ID-1
		}
		d.saves = append(d.saves, save)
	}
	s.upto = page.Events[len(page.Events)-1].ID
	others := func(e domain.Event) bool { return !r.Rules.WantsEvent(e, d.pipelines.Finishes) }
	return slices.DeleteFunc(page.Events, others), nil
}
