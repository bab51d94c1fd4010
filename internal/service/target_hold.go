package service

import (
	"cmp"
	"context"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"switchyard/internal/domain"
)

// follow takes over what people have changed.
func (d *deliverer) follow(ctx context.Context, now time.Time) {
	all := *d.current.Load()
	present := make(map[string]bool, len(all))
	for _, t := range all {
		present[t.ID] = true
		r := d.targets[t.ID]
		switch {
		case r == nil:
			r = &running{Target: t, told: t.Progress.Told, gone: map[string]time.Time{}, settled: t.Progress.Position}
			if r.told == nil {
				r.told = map[string]int64{}
			}
			r.Progress.Told = nil
			if t.Revision != t.Progress.Revision { // people have changed it meanwhile, perhaps what failed
				r.Progress.NextAt = time.Time{}
			}
			d.targets[t.ID] = r
		case r.Revision != t.Revision:
			d.change(ctx, r, t, now)
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
func (d *deliverer) change(ctx context.Context, r *running, t domain.Target, now time.Time) {
	old, p := r.Target, r.Progress
	t.Progress = domain.TargetProgress{
		Position: p.Position, Skipped: p.Skipped, SentAt: p.SentAt, SentMS: p.SentMS, DigestedAt: p.DigestedAt,
		HeldAt: p.HeldAt, DigestEvent: p.DigestEvent,
	}
	if old.URL == t.URL {
		t.Progress.Parts = p.Parts
	}
	was, is := old.Rules, t.Rules
	if was.Digest != is.Digest || was.DigestAt != is.DigestAt || was.TimeZone != is.TimeZone {
		t.Progress.DigestedAt = now
	}
	if !t.Enabled {
		t.Progress.Gone = p.Gone && !old.Enabled
	}
	r.Target = t
	save := d.saveOf(r)
	if len(t.Rules.Alerts) > 0 {
		all, _ := d.alerts.standing(ctx)
		for _, a := range all {
			if t.Wants(a) && !old.Wants(a) {
				r.told[a.Key()] = a.Since.UnixMilli()
				save.Progress.Told = r.told
			}
		}
	}
	save.News = true
	d.saves = append(d.saves, save)
}

// standing returns all alerts, and whether one that is not among them is over; while its project cannot be reached,
// that is unknown.
func (s *Alerts) standing(ctx context.Context) (all []domain.Alert, isOver func(key string) bool) {
	boards := s.pipelines.Boards(ctx, quietAge)
	unknown := unreachable(boards.Pipelines)
	return s.all(ctx, boards), func(key string) bool {
		_, rest, _ := strings.Cut(key, "/")
		escaped, _, _ := strings.Cut(rest, "/")
		project, err := url.PathUnescape(escaped)
		return err == nil && s.isOver(key, project, unknown)
	}
}

// tellAlerts queues the alerts that have begun, and forgets those that are over.
func (d *deliverer) tellAlerts(ctx context.Context, now time.Time) {
	wants := func(t domain.Target) bool { return t.Enabled && len(t.Rules.Alerts) > 0 }
	if !slices.ContainsFunc(*d.current.Load(), wants) {
		return
	}
	all, isOver := d.alerts.standing(ctx)
	d.standing = all
	for _, r := range d.targets {
		if len(r.Rules.Alerts) == 0 {
			continue
		}
		changed := r.forget(all, isOver, now)
		var queued []domain.QueuedMessage
		if r.Enabled && !r.held(now) {
			for _, a := range r.news(all) {
				queued = append(queued, domain.QueuedMessage{After: d.scanned, Message: d.alert(&r.Target, a)})
				r.told[a.Key()] = a.Since.UnixMilli()
			}
		}
		if changed || len(queued) > 0 {
			save := d.saveOf(r)
			save.Progress.Told, save.Queued = r.told, queued
			d.saves = append(d.saves, save)
		}
	}
}

// news returns the alerts that a target has not been told of, in the order in which they began.
func (r *running) news(all []domain.Alert) (found []domain.Alert) {
	for _, a := range all {
		if a.Acknowledged != nil || !r.Wants(a) {
			continue
		}
		told, known := r.told[a.Key()]
		again := (a.Kind == domain.AlertBlocked || a.Kind == domain.AlertMerge) && a.Since.UnixMilli() > told
		if !known || again {
			found = append(found, a)
		}
	}
	slices.SortFunc(found, func(a, b domain.Alert) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Key(), b.Key()))
	})
	return found
}

// forget forgets the alerts that have been over for a while, and reports whether there were any.
func (r *running) forget(all []domain.Alert, isOver func(key string) bool, now time.Time) (changed bool) {
	if len(r.told) == 0 {
		return false
	}
	stands := make(map[string]bool, len(all))
	for _, a := range all {
		stands[a.Key()] = true
	}
	for key := range r.told {
		since, isGone := r.gone[key]
		switch {
		case stands[key] || !isOver(key):
			delete(r.gone, key)
		case !isGone:
			r.gone[key] = now
		case now.Sub(since) >= alertGrace:
			delete(r.gone, key)
			delete(r.told, key)
			changed = true
		}
	}
	return changed
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
	case quiet && p.HeldAt.IsZero() && len(r.digest.counts)+len(r.news(d.standing)) > 0:
		p.HeldAt = now
		d.saves = append(d.saves, d.saveOf(r))
	case quiet || r.pending: // later, or when all has been read
	case !p.HeldAt.IsZero() && r.Rules.Digest == domain.NoDigest, due.After(p.DigestedAt):
		d.flush(ctx, r, now)
	}
	return nil
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
	save, g, alerts := d.saveOf(r), r.digest, r.news(d.standing)
	if len(g.counts)+len(alerts) > 0 {
		record, message := d.messages.digest(&r.Target, g, alerts, d.flowOf(ctx, r), now)
		for _, a := range alerts {
			r.told[a.Key()] = a.Since.UnixMilli()
		}
		save.Digest, save.Queued = &record, []domain.QueuedMessage{{After: g.upto, Message: message}}
		r.Progress.DigestEvent = g.upto
	}
	r.Progress.Position, r.Progress.DigestedAt, r.Progress.HeldAt, r.digest = g.upto, now, time.Time{}, nil
	save.Progress = r.Progress
	if len(alerts) > 0 {
		save.Progress.Told = r.told
	}
	r.settled = r.Progress.Position
	d.saves = append(d.saves, save)
}
