package service

import (
	"context"
	"time"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
	"switchyard/internal/supervise"
)

type sentMessage struct {
	target  *targetState
	message domain.Message
	queued  int64 // its id in the queue, 0 for an event's
	event   int64
	alert   *listedAlert
	sent    domain.SendResult
	at      time.Time
}

// send begins to send a target's next message, if there is one and it is time. It returns when to call it again if
// nothing happens until then.
func (d *deliverer) send(ctx context.Context, r *targetState, now time.Time) (next time.Duration, err error) {
	mode := r.mode(now)
	switch phase := r.phase(now); {
	case phase == phaseOff, phase == phaseSending, mode == modeHold, r.Owner != "" && !d.mayGet(r):
		return targetTick, nil
	case phase == phaseFailing:
		return r.Progress.NextAt.Sub(now), nil
	}
	if r.queued && len(r.queue) == 0 {
		if r.queue, err = d.store.QueuedMessages(ctx, r.ID, targetQueue); err != nil {
			return targetTick, err
		}
		r.queued = len(r.queue) == targetQueue
	}
	if mode == modeSingle {
		if err := d.readOn(ctx, r); err != nil {
			return targetTick, err
		}
		if d.isTooMuch(r, now) {
			r.Progress.HeldAt, r.heapedAt = now, now
			d.saves = append(d.saves, d.saveOf(r))
		} else {
			d.flushOver(r, now)
		}
		if len(d.saves) > 0 { // progress of that, or of a gap
			return 0, nil
		}
	}
	out := d.next(r, mode, now)
	switch {
	case out.message.ID != "":
		d.attempt(r, out, now)
	case mode == modeSingle && r.stream.more: // there is more to read
		return 0, nil
	}
	return targetTick, nil
}

// next returns what a target is told next, without a message if there is nothing.
func (d *deliverer) next(r *targetState, mode deliveryMode, now time.Time) sentMessage {
	out, s := sentMessage{target: r}, &r.stream
	var n *listedAlert
	if mode == modeSingle {
		n = d.nextAlert(r, now)
	}
	switch {
	case len(r.queue) > 0 && (mode != modeSingle || s.isPast(r.queue[0].After)):
		out.queued, out.message = r.queue[0].ID, r.queue[0].Message
	case n != nil && s.isPast(n.after):
		out.alert, out.message = n, d.alert(&r.Target, n.alert)
	case len(s.events) > 0:
		out.event, out.message = s.events[0].ID, d.event(&r.Target, s.events[0])
	}
	return out
}

// attempt begins to send a message.
func (d *deliverer) attempt(r *targetState, out sentMessage, now time.Time) {
	r.Progress.Begin(out.message.ID, now)
	r.sending = true
	d.under++
	t := r.Target
	supervise.Go(d.log, "message to a target", func() {
		out.sent = domain.SendResult{Err: domain.Errorf(domain.Internal, "internal error, which is in the log")}
		defer func() {
			out.at = clock.Now()
			d.results <- out
		}()
		out.sent = d.messenger.Send(d.ctx, t, out.message)
	})
}

// mayGet reports whether the owner of a device may see what it gets. A device ends with its token; that of somebody who
// logs in waits until they do so again.
func (d *deliverer) mayGet(r *targetState) bool {
	may, mayAgain := d.access.MaySee(r.Owner)
	if !may && !mayAgain {
		save := d.saveOf(r)
		save.Disable, save.News, r.Enabled = true, true, false
		d.saves = append(d.saves, save)
	}
	return may
}

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
		r.minute.told[s.alert.group()]++
	case s.queued != 0:
		if len(r.queue) > 0 && r.queue[0].ID == s.queued {
			r.queue = r.queue[1:]
		}
	default:
		p.Position = s.event
		if events := r.stream.events; len(events) > 0 && events[0].ID == s.event {
			r.stream.events = events[1:]
		}
		r.stream.upto = max(r.stream.upto, s.event)
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
