package service

import (
	"context"
	"slices"
	"time"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
	"switchyard/internal/supervise"
)

// running is a target to which messages are sent.
type running struct {
	domain.Target
	zone    *time.Location
	alerts  []*noted       // those that wait to be told, in order
	alike   map[string]int // how many alerts were told one by one in the minute, by kind and project
	minute  time.Time
	queue   []domain.QueuedMessage
	queued  bool           // the store may have more of them
	events  []domain.Event // the next ones that concern it
	read    int64          // up to where events have been looked for
	pending bool           // later ones may concern it
	gap     bool           // that events are missing has been said, of the ones it is catching up with
	digest  *gathered      // nil unless it gets digests now
	sending bool
	// settled and settledAlerts are the positions as they are stored.
	settled, settledAlerts int64
	heapedAt               time.Time // when so much waited last that it became a digest
}

// held reports whether t gets what happens now in a digest.
func (r *running) held(now time.Time) bool {
	return r.Rules.Digest != domain.NoDigest || r.isQuiet(now) || !r.Progress.HeldAt.IsZero()
}

func (r *running) isQuiet(now time.Time) bool { return r.Rules.IsQuiet(now.In(r.zone)) }

type sentMessage struct {
	target  *running
	message domain.Message
	queued  int64 // its id in the queue, 0 for an event's
	event   int64
	alert   *noted
	sent    domain.Sent
	at      time.Time
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
			wants := func(e domain.Event) bool { return r.Rules.WantsEvent(e.Project, e.Type) }
			switch {
			case r.pending:
			case r.digest != nil:
				for _, e := range page.Events {
					if e.ID <= r.read || !wants(e) {
						continue
					}
					if counted[e.ID] == "" {
						counted[e.ID] = d.countOf(e)
					}
					r.digest.counts[counted[e.ID]]++
				}
				r.read = max(r.read, d.scanned)
				r.digest.upto = r.read
			case slices.ContainsFunc(page.Events, wants):
				r.pending = true
			case len(r.events) == 0:
				r.read = max(r.read, d.scanned)
				r.Progress.Position = r.read
			}
		}
	}
	return nil
}

// fill reads on until so many events concern the target that they become a digest, or there is no other one.
func (d *deliverer) fill(ctx context.Context, r *running) error {
	for range targetPages {
		if len(r.events) > maxHeap || !r.pending {
			return nil
		}
		page, err := d.page(ctx, r)
		if err != nil {
			return err
		}
		r.events = append(r.events, page...)
		if len(r.events) == 0 {
			r.Progress.Position = r.read
		}
	}
	return nil
}

// page reads on for a target, and returns those of the next events that concern it. If some before them are no longer
// kept, the target is told so, once until it has caught up.
func (d *deliverer) page(ctx context.Context, r *running) ([]domain.Event, error) {
	if len(r.Rules.Events) == 0 {
		r.read, r.pending = d.scanned, false
		return nil, nil
	}
	page, err := d.events.Page(ctx, domain.EventQuery{After: r.read, Limit: targetPage, Bytes: targetBytes})
	if err != nil {
		return nil, err
	}
	if len(page.Events) == 0 {
		r.pending, r.gap = false, false
		return nil, nil
	}
	if first := page.Events[0]; first.ID > r.read+1 && !r.gap {
		r.gap = true
		save := d.saveOf(r)
		m := d.gap(&r.Target, first.ID, first.ID-r.read-1, clock.Now())
		save.Queued = []domain.QueuedMessage{{After: r.read, Message: m}}
		if len(r.events) == 0 && r.digest == nil {
			r.Progress.Position, save.Progress.Position = first.ID-1, first.ID-1
		}
		d.saves = append(d.saves, save)
	}
	r.read = page.Events[len(page.Events)-1].ID
	others := func(e domain.Event) bool { return !r.Rules.WantsEvent(e.Project, e.Type) }
	return slices.DeleteFunc(page.Events, others), nil
}

// send begins to send the next message of a target, if there is one and it is time. It returns after what time to call
// it again, if nothing happens.
func (d *deliverer) send(ctx context.Context, r *running, now time.Time) (next time.Duration, err error) {
	wait := r.Progress.NextAt.Sub(now)
	switch {
	case !r.Enabled || r.sending || r.isQuiet(now) || r.Owner != "" && !d.mayGet(r):
		return targetTick, nil
	case wait > 0:
		return wait, nil
	}
	if r.queued && len(r.queue) == 0 {
		if r.queue, err = d.store.QueuedMessages(ctx, r.ID, targetQueue); err != nil {
			return targetTick, err
		}
		r.queued = len(r.queue) == targetQueue
	}
	held := r.held(now)
	if !held {
		if err := d.fill(ctx, r); err != nil {
			return targetTick, err
		}
		if d.isTooMuch(r, now) {
			r.Progress.HeldAt, r.heapedAt = now, now
			d.saves = append(d.saves, d.saveOf(r))
		}
		if len(d.saves) > 0 { // of that, or of a gap
			return 0, nil
		}
	}
	out := sentMessage{target: r}
	// comesFirst reports whether what waits for the events up to after need not wait.
	comesFirst := func(after int64) bool {
		if len(r.events) > 0 {
			return after < r.events[0].ID
		}
		return !r.pending || r.read >= after
	}
	var n *noted
	if !held {
		n = d.nextAlert(r, now)
	}
	switch {
	case len(r.queue) > 0 && (held || comesFirst(r.queue[0].After)):
		out.queued, out.message = r.queue[0].ID, r.queue[0].Message
	case n != nil && comesFirst(n.after):
		out.alert, out.message = n, d.alert(&r.Target, n.alert)
	case !held && len(r.events) > 0:
		out.event, out.message = r.events[0].ID, d.event(&r.Target, r.events[0])
	case !held && r.pending:
		return 0, nil // there is more to read
	default:
		return targetTick, nil
	}
	r.Progress.Begin(out.message.ID, now)
	r.sending = true
	d.under++
	t := r.Target
	supervise.Go(d.log, "message to a target", func() {
		out.sent = domain.Sent{Err: domain.Errorf(domain.Internal, "internal error, which is in the log")}
		defer func() {
			out.at = clock.Now()
			d.results <- out
		}()
		out.sent = d.messenger.Send(d.ctx, t, out.message)
	})
	return targetTick, nil
}

// mayGet reports whether the owner of a device may see what it gets. A device ends with a token; it waits for somebody
// who logs in until they do so again.
func (d *deliverer) mayGet(r *running) bool {
	may, mayAgain := d.access.MaySee(r.Owner)
	if !may && !mayAgain {
		save := d.saveOf(r)
		save.Disable, save.News, r.Enabled = true, true, false
		d.saves = append(d.saves, save)
	}
	return may
}

// record takes the result of an attempt.
func (d *deliverer) record(s sentMessage) {
	r := s.target
	d.under--
	r.sending = false
	p := &r.Progress
	failing, attempt := !p.FailingAt.IsZero(), p.Attempts+1
	done := p.Apply(s.sent, s.at)
	log := delivery(s.message, s.sent, attempt, s.at)
	switch {
	case !done:
	case s.alert != nil:
		r.pass(s.alert)
		r.alike[s.alert.alike()]++
	case s.queued != 0:
		if len(r.queue) > 0 && r.queue[0].ID == s.queued {
			r.queue = r.queue[1:]
		}
	default:
		p.Position = s.event
		if len(r.events) > 0 && r.events[0].ID == s.event {
			r.events = r.events[1:]
		}
		r.read = max(r.read, s.event)
	}
	if done && log.Error != "" {
		log.Error = domain.Cut("skipped after 24 hours: "+log.Error, domain.MaxText)
	}
	save := d.saveOf(r)
	save.Delivery, save.Disable = &log, p.Gone
	save.News = failing == p.FailingAt.IsZero() || p.Gone
	if done {
		save.Done = s.queued
	}
	d.saves = append(d.saves, save)
}
