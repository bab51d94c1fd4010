package service

import (
	"context"
	"errors"
	"time"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
)

const (
	// targetTick is how often alerts, quiet hours and digests are checked, and failed writes retried.
	targetTick = time.Second
	// targetScan is the minimum time between two checks for new events, of which there may be thousands a second.
	targetScan = 20 * time.Millisecond
	// targetPage, targetBytes and targetPages are how much of the stream is read for one target at a time.
	targetPage, targetBytes, targetPages = 200, 256 << 10, 10
	// targetQueue is how many waiting messages are kept in memory.
	targetQueue = 20
	// targetGrace is how long messages under way may take when the gateway ends or no longer leads.
	targetGrace = 700 * time.Millisecond
	// targetSettle is how often to store positions that have only passed events of no concern, and targetSweep how
	// often to remove what is too old.
	targetSettle, targetSweep = time.Minute, time.Hour
	hoursLife                 = 48 * time.Hour
	// When over maxHeap messages wait for a target, or one for over maxWait, they become one digest, at most once
	// per heapPause.
	maxHeap, maxWait, heapPause = 100, 10 * time.Minute, 10 * time.Second
	// alertGrace is how long an alert must be gone before it counts as a new one when it returns.
	alertGrace = 5 * time.Second
)

// deliverer sends messages under one fencing token, as described in docs/design/digests.md. One goroutine works with
// it; others only send.
type deliverer struct {
	messageBuilder
	token     int64
	ctx       context.Context // for what is under way
	targets   map[string]*targetState
	results   chan sentMessage
	under     int // messages under way
	saves     []domain.TargetSave
	scanned   int64 // the last event checked for all targets
	alertList *alertList

	scannedAt, tickedAt, settledAt, sweptAt time.Time
}

func deliver(ctx context.Context, s *Targets, token int64) error {
	identity, err := s.store.Identity(ctx)
	if err != nil {
		return err
	}
	sending, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	d := &deliverer{
		messageBuilder: messageBuilder{s, identity}, token: token, ctx: sending, targets: map[string]*targetState{},
		results: make(chan sentMessage, domain.MaxTargets), scanned: s.events.LastID(), settledAt: clock.Now(),
	}
	if err := s.table.load(ctx); err != nil { // what another leader has stored
		return err
	}
	tick := time.NewTicker(targetTick)
	defer tick.Stop()
	for {
		changed, happened := s.table.changedAny(), s.events.Changed()
		next, err := d.step(ctx)
		if ctx.Err() != nil {
			return d.finish()
		}
		if err != nil {
			return err
		}
		if s.events.LastID() > d.scanned {
			happened = nil
			next = min(next, targetScan)
		}
		select {
		case <-ctx.Done():
		case <-changed:
		case <-happened:
		case <-tick.C:
		case <-time.After(next):
		case r := <-d.results:
			d.record(r)
			for range len(d.results) {
				d.record(<-d.results)
			}
		}
	}
}

// finish waits a moment for what is under way, and stores the results.
func (d *deliverer) finish() error {
	late := time.After(targetGrace)
	for d.under > 0 {
		select {
		case r := <-d.results:
			d.record(r)
		case <-late:
			return d.save(context.Background())
		}
	}
	return d.save(context.Background())
}

// step does what there is to do, and returns how long until there may be more. It returns ErrNotLeader; other failures
// of the store are logged, and what is still to be stored is kept.
func (d *deliverer) step(ctx context.Context) (next time.Duration, err error) {
	now := clock.Now()
	work := func() error {
		if err := d.save(ctx); err != nil {
			return err
		}
		if d.alertList == nil {
			stored, err := d.store.NotedAlerts(ctx)
			if err != nil {
				return err
			}
			d.alertList = newAlertList(stored)
			d.alertList.last = max(d.alertList.last, now.UnixMicro())
		}
		d.follow(now)
		if now.Sub(d.scannedAt) >= targetScan {
			d.scannedAt = now
			if err := d.scan(ctx); err != nil {
				return err
			}
		}
		if now.Sub(d.tickedAt) >= targetTick {
			d.tickedAt = now
			if err := errors.Join(d.noteAlerts(ctx, now), d.tidy(ctx, now)); err != nil {
				return err
			}
		}
		for _, r := range d.targets {
			if err := d.gather(ctx, r, now); err != nil {
				return err
			}
		}
		return d.save(ctx)
	}
	if err := work(); err != nil {
		if unlessLost(err) == nil || ctx.Err() != nil {
			return 0, err
		}
		d.warn(ctx, err)
		return targetTick, nil
	}
	next = targetTick
	for _, r := range d.targets {
		wait, err := d.send(ctx, r, now)
		if err != nil {
			d.warn(ctx, err)
		}
		next = min(next, wait)
	}
	return next, nil
}

func (d *deliverer) warn(ctx context.Context, err error) {
	if domain.CodeOf(err) != domain.Unavailable {
		d.log.WarnContext(ctx, "cannot store or read what targets are told", "error", err)
	}
}

func (d *deliverer) tidy(ctx context.Context, now time.Time) error {
	if now.Sub(d.settledAt) >= targetSettle {
		d.settledAt = now
		for _, r := range d.targets {
			if r.stored != r.position() && !r.sending {
				d.saves = append(d.saves, d.saveOf(r))
			}
		}
	}
	if now.Sub(d.sweptAt) < targetSweep {
		return nil
	}
	d.sweptAt = now
	digests := time.UnixMilli(0)
	if d.keep > 0 {
		digests = now.Add(-d.keep)
	}
	return d.store.RemoveDigests(ctx, d.token, now.Add(-hoursLife), digests)
}

func (d *deliverer) saveOf(r *targetState) domain.TargetSave {
	r.stored, r.Progress.Revision = r.position(), r.Revision
	return domain.TargetSave{Target: r.ID, Progress: r.Progress, Revision: r.Revision}
}

func (d *deliverer) save(ctx context.Context) error {
	if len(d.saves) == 0 {
		return nil
	}
	if err := d.store.SaveTargets(ctx, d.token, d.saves); err != nil {
		return err
	}
	news := false
	for _, s := range d.saves {
		news = news || s.News || s.Disable
		if r := d.targets[s.Target]; r != nil && len(s.Queued) > 0 {
			r.queued = true
		}
	}
	d.saves = nil
	if news {
		return d.table.load(ctx)
	}
	return nil
}
