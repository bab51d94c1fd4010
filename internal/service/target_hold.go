package service

import (
	"context"
	"maps"
	"slices"
	"time"

	"switchyard/internal/domain"
)

// follow takes over what people have changed.
func (d *deliverer) follow(now time.Time) {
	all := *d.current.Load()
	present := make(map[string]bool, len(all))
	for _, t := range all {
		present[t.ID] = true
		r := d.targets[t.ID]
		switch {
		case r == nil:
			r = &running{Target: t, settled: t.Progress.Position, settledAlerts: t.Progress.Alerts}
			if t.Revision != t.Progress.Revision { // people have changed it meanwhile, perhaps what failed
				r.Progress.NextAt = time.Time{}
			}
			d.targets[t.ID] = r
		case r.Revision != t.Revision:
			d.change(r, t, now)
		default:
			r.Enabled = t.Enabled
			continue
		}
		r.zone = r.Rules.Zone()
		r.events, r.read, r.pending, r.digest, r.queue, r.queued = nil, r.Progress.Position, true, nil, nil, true
	}
	maps.DeleteFunc(d.targets, func(id string, _ *running) bool { return !present[id] })
}

// change gives a target other rules. Alerts that concern it only by these and stand already are not news.
func (d *deliverer) change(r *running, t domain.Target, now time.Time) {
	old, p := r.Target, r.Progress
	t.Progress = p
	t.Progress.Reset()
	if old.URL == t.URL {
		t.Progress.Message, t.Progress.Parts, t.Progress.FirstAt = p.Message, p.Parts, p.FirstAt
	}
	was, is := old.Rules, t.Rules
	if was.Digest != is.Digest || was.DigestAt != is.DigestAt || was.TimeZone != is.TimeZone {
		t.Progress.DigestedAt = now
	}
	if !t.Enabled {
		t.Progress.Gone = p.Gone && !old.Enabled
	}
	r.Target = t
	if len(is.Alerts) > 0 && p.AlertsFrom.IsZero() {
		waiting := r.alerts
		r.Progress.Left, r.Progress.Alerts, r.Progress.AlertsFrom = nil, d.noted.last, time.Time{}
		for _, n := range waiting {
			r.leave(n)
		}
		for key, seq := range p.Left {
			if n := d.noted.byKey[key]; n != nil && n.Seq == seq {
				r.leave(n)
			}
		}
		if len(was.Alerts) == 0 {
			r.Progress.AlertsFrom = now
		}
	}
	if r.alerts = nil; !p.HeldAt.IsZero() { // a digest of what was held back may be due at once
		d.noted.wait(r)
	}
	save := d.saveOf(r)
	save.News = true
	d.saves = append(d.saves, save)
}

// standing returns all alerts, and whether one that is not among them is over.
func (s *Alerts) standing(ctx context.Context) (all []domain.Alert, isOver func(domain.NotedAlert) bool) {
	boards := s.pipelines.Boards(ctx, quietAge)
	unknown := unknownAlerts(boards.Pipelines)
	return s.all(boards), func(a domain.NotedAlert) bool {
		return s.isOver(a.Kind, unknown(a.Project, a.Key))
	}
}

// gather counts what is held back for a target and, when it is time, puts it into one message.
func (d *deliverer) gather(ctx context.Context, r *running, now time.Time) error {
	if !r.held(now) {
		r.digest = nil
		return nil
	}
	if r.digest == nil {
		r.digest = &gathered{upto: r.Progress.Position, counts: map[string]int{}}
		r.events, r.read, r.pending = nil, r.Progress.Position, true
	}
	for range targetPages {
		if !r.pending {
			break
		}
		page, err := d.page(ctx, r)
		if err != nil {
			return err
		}
		for _, e := range page {
			r.digest.counts[d.countOf(e)]++
		}
		r.digest.upto = r.read
	}
	if len(r.digest.counts) == 0 { // nothing to tell so far
		r.Progress.Position = r.digest.upto
	}
	quiet, p := r.isQuiet(now), &r.Progress
	due := time.Time{}
	if r.Rules.Digest != domain.NoDigest {
		due = r.Rules.LastDigest(now.In(r.zone))
	}
	switch {
	case quiet && p.HeldAt.IsZero() && len(r.digest.counts)+len(r.alerts) > 0:
		p.HeldAt = now
		d.saves = append(d.saves, d.saveOf(r))
	case quiet || r.pending: // later, or when all has been read
	case !p.HeldAt.IsZero() && r.Rules.Digest == domain.NoDigest, due.After(p.DigestedAt):
		d.flush(ctx, r, now)
	}
	return nil
}

// isTooMuch reports whether what waits for a target comes as one digest: there is much of it, or it waits for long. A
// message that has been tried is told as it is, first. Alerts that were left over from a minute come at its end.
func (d *deliverer) isTooMuch(r *running, now time.Time) bool {
	p := &r.Progress
	if r.held(now) || p.Message != "" || !r.Enabled || now.Before(r.heapedAt.Add(heapPause)) {
		return false
	}
	isOld := func(n *noted) bool { // it has not been acknowledged before
		return n.Seq > p.Alerts && now.UnixMicro()-n.Seq >= maxWait.Microseconds()
	}
	old := len(r.events) > 0 && now.Sub(r.events[0].ReceivedAt) >= maxWait || slices.ContainsFunc(r.alerts, isOld)
	return old || r.waiting() > maxHeap || len(p.Over) > 0 && !now.Truncate(time.Minute).Equal(p.OverAt)
}

// waiting returns how many messages wait for a target. Of alerts that are alike only some are: one project's do not
// turn those of others into a digest.
func (r *running) waiting() int {
	n, alike := len(r.events), map[string]int{}
	for _, a := range r.alerts {
		if alike[a.alike()]++; alike[a.alike()] <= maxAlike {
			n++
		}
	}
	return n
}

// flowOf is the line of flow in a target's daily digest, "" for none: the digest comes without it, too.
func (d *deliverer) flowOf(ctx context.Context, r *running) string {
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

// flush queues the digest of what was held back for a target, if there is anything.
func (d *deliverer) flush(ctx context.Context, r *running, now time.Time) {
	save, g, alerts := d.saveOf(r), r.digest, slices.Clone(r.alerts)
	if len(g.counts)+len(alerts)+len(r.Progress.Over) > 0 {
		told := domain.Each(alerts, func(n *noted) domain.Alert { return n.alert })
		record, message := d.messages.digest(&r.Target, g, told, d.flowOf(ctx, r), now)
		for _, n := range alerts {
			r.pass(n)
		}
		r.Progress.Over = nil
		save.Digest, save.Queued = &record, []domain.QueuedMessage{{After: g.upto, Message: message}}
		r.Progress.DigestEvent = g.upto
	}
	r.Progress.Position, r.Progress.DigestedAt, r.Progress.HeldAt, r.digest = g.upto, now, time.Time{}, nil
	save.Progress = r.Progress
	r.settled, r.settledAlerts = r.Progress.Position, r.Progress.Alerts
	d.saves = append(d.saves, save)
}
