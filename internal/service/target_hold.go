package service

import (
	"context"
	"slices"
	"strings"
	"time"

	"switchyard/internal/domain"
)

// gather counts what goes into a target's digest and, when it is time, makes it one message.
func (d *deliverer) gather(ctx context.Context, r *targetState, now time.Time) error {
	if phase := r.phase(now); phase == phaseOff || phase == phaseSending {
		return nil
	}
	mode := r.mode(now)
	switch gathers := r.stream.counts != nil; {
	case mode == modeSingle && gathers: // quiet hours ended before anything was held back
		r.read(nil)
		return nil
	case mode == modeSingle:
		return nil
	case !gathers:
		r.read(map[string]int{})
	}
	if err := d.readOn(ctx, r); err != nil {
		return err
	}
	p, due := &r.Progress, time.Time{}
	if r.Rules.Digest != domain.NoDigest {
		due = r.Rules.LastDigest(now.In(r.zone))
	}
	switch {
	case mode == modeHold && p.HeldAt.IsZero() && len(r.stream.counts)+len(r.alerts) > 0:
		p.HeldAt = now
		d.saves = append(d.saves, d.saveOf(r))
	case mode == modeHold || r.stream.more: // later, or when everything has been read
	case !p.HeldAt.IsZero() && r.Rules.Digest == domain.NoDigest, due.After(p.DigestedAt):
		d.flush(ctx, r, now)
	}
	return nil
}

// isTooMuch reports whether there is so much to tell singly, or for so long, that it becomes a digest.
func (d *deliverer) isTooMuch(r *targetState, now time.Time) bool {
	p := &r.Progress
	if p.Message != "" || now.Before(r.heapedAt.Add(heapPause)) {
		return false
	}
	isOld := func(n *listedAlert) bool { // it has not been acknowledged before
		return n.Seq > p.Alerts && now.UnixMicro()-n.Seq >= maxWait.Microseconds()
	}
	events := r.stream.events
	old := len(events) > 0 && now.Sub(events[0].ReceivedAt) >= maxWait || slices.ContainsFunc(r.alerts, isOld)
	return old || r.waiting() > maxHeap
}

// flushOver queues the digest of what was too much for a minute, once that has ended. The rest stays as it is.
func (d *deliverer) flushOver(r *targetState, now time.Time) {
	p := &r.Progress
	if len(p.Over) == 0 || p.Message != "" || now.Truncate(time.Minute).Equal(p.OverAt) {
		return
	}
	made, message := d.messageBuilder.digest(&r.Target, map[string]int{}, p.Position, nil, "", now)
	p.Over, p.DigestEvent = nil, p.Position
	save := d.saveOf(r)
	save.Digest, save.Queued = &made, []domain.QueuedMessage{{After: p.Position, Message: message}}
	d.saves = append(d.saves, save)
}

// waiting returns how many messages wait for a target. Of similar alerts only some count.
func (r *targetState) waiting() int {
	n, alike := len(r.stream.events), map[string]int{}
	for _, a := range r.alerts {
		if alike[a.group()]++; alike[a.group()] <= maxAlike {
			n++
		}
	}
	return n
}

// flowOf is the flow line of a target's daily digest; "" for none, which does not stop the digest.
func (d *deliverer) flowOf(ctx context.Context, r *targetState) string {
	if r.Rules.Digest != domain.DailyDigest {
		return ""
	}
	registry := d.pipelines.projects.Registry()
	projects := slices.DeleteFunc(slices.Clone(r.Rules.Projects), func(name string) bool {
		_, registered := registry.Index(name)
		return !registered
	})
	if len(projects) == 0 && len(r.Rules.Projects) > 0 {
		return ""
	}
	said, err := d.flow.Sentence(ctx, r.zone, projects...)
	if err != nil {
		return ""
	}
	return "Flow: " + said
}

// costOf is the line on calls' costs since a target's last digest; "" for none, which does not stop the digest.
func (d *deliverer) costOf(ctx context.Context, r *targetState, now time.Time) string {
	span := domain.DigestRecord{At: now, DigestContent: domain.DigestContent{Rules: r.Rules}}
	said, err := d.costs.Sentence(ctx, span.Began(r.zone), now, r.Rules.Projects)
	if err != nil {
		return ""
	}
	return said
}

// flush queues the digest of what was held back for a target, if there is anything.
func (d *deliverer) flush(ctx context.Context, r *targetState, now time.Time) {
	p, s, alerts := &r.Progress, &r.stream, r.alerts
	var record *domain.DigestRecord
	var queued []domain.QueuedMessage
	if len(s.counts)+len(alerts)+len(p.Over) > 0 {
		told := domain.Map(alerts, func(n *listedAlert) domain.Alert { return n.alert })
		lines := strings.TrimSpace(d.flowOf(ctx, r) + "\n" + d.costOf(ctx, r, now))
		made, message := d.messageBuilder.digest(&r.Target, s.counts, s.upto, told, lines, now)
		record, queued = &made, []domain.QueuedMessage{{After: s.upto, Message: message}}
		for _, n := range slices.Clone(alerts) {
			r.pass(n)
		}
		p.Over, p.DigestEvent = nil, s.upto
	}
	p.Position, p.DigestedAt, p.HeldAt, s.counts = s.upto, now, time.Time{}, nil
	save := d.saveOf(r)
	save.Digest, save.Queued = record, queued
	d.saves = append(d.saves, save)
}
