package service

import (
	"maps"
	"time"

	"switchyard/internal/domain"
)

type targetState struct {
	domain.Target
	zone     *time.Location
	stream   targetReader
	alerts   []*listedAlert // alerts still to be told, in order
	minute   alertMinute
	queue    []domain.QueuedMessage
	queued   bool // the store may have more of them
	sending  bool
	stored   targetPosition // as stored
	heapedAt time.Time      // when a heap last became a digest
}

type targetPosition struct{ event, alert int64 }

func (r *targetState) position() targetPosition {
	return targetPosition{r.Progress.Position, r.Progress.Alerts}
}

// phase is what the next attempt waits for. The zero value means that nothing stops it.
type phase int

const (
	phaseReady   phase = iota
	phaseOff           // for people to enable the target
	phaseSending       // for the current attempt to end
	phaseFailing       // for the pause after a failed attempt to end
)

func (r *targetState) phase(now time.Time) phase {
	switch {
	case !r.Enabled:
		return phaseOff
	case r.sending:
		return phaseSending
	case r.Progress.NextAt.After(now):
		return phaseFailing
	}
	return phaseReady
}

// deliveryMode is how a target is told what happens, whether attempts fail or not.
type deliveryMode int

const (
	modeSingle deliveryMode = iota
	modeDigest              // in a digest: its rules say so, or something has been held back
	modeHold                // in a digest, once its quiet hours are over; nothing is sent until then
)

func (r *targetState) mode(now time.Time) deliveryMode {
	switch {
	case r.Rules.IsQuiet(now.In(r.zone)):
		return modeHold
	case r.Rules.Digest != domain.NoDigest, !r.Progress.HeldAt.IsZero():
		return modeDigest
	}
	return modeSingle
}

// follow takes over people's changes.
func (d *deliverer) follow(now time.Time) {
	all := d.table.list()
	present := make(map[string]bool, len(all))
	for _, t := range all {
		present[t.ID] = true
		r := d.targets[t.ID]
		switch {
		case r == nil:
			r = &targetState{Target: t}
			r.stored = r.position()
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
		r.queue, r.queued = nil, true
		r.read(nil)
	}
	maps.DeleteFunc(d.targets, func(id string, _ *targetState) bool { return !present[id] })
}

// change gives a target new rules. Open alerts that concern it only under these are not news.
func (d *deliverer) change(r *targetState, t domain.Target, now time.Time) {
	old, p := r.Target, r.Progress
	t.Progress = p
	t.Progress.Reset()
	if old.URL == t.URL {
		t.Progress.Message, t.Progress.Parts, t.Progress.FirstAt = p.Message, p.Parts, p.FirstAt
	}
	before, after := old.Rules, t.Rules
	if before.Digest != after.Digest || before.DigestAt != after.DigestAt || before.TimeZone != after.TimeZone {
		t.Progress.DigestedAt = now
	}
	if !t.Enabled {
		t.Progress.Gone = p.Gone && !old.Enabled
	}
	r.Target = t
	if len(after.Alerts) > 0 && p.AlertsFrom.IsZero() {
		waiting := r.alerts
		r.Progress.Left, r.Progress.Alerts, r.Progress.AlertsFrom = nil, d.alertList.last, time.Time{}
		for _, n := range waiting {
			r.leave(n)
		}
		for key, seq := range p.Left {
			if n := d.alertList.byKey[key]; n != nil && n.Seq == seq {
				r.leave(n)
			}
		}
		if len(before.Alerts) == 0 {
			r.Progress.AlertsFrom = now
		}
	}
	if r.alerts = nil; !p.HeldAt.IsZero() { // a digest of what was held back may be due at once
		d.alertList.wait(r)
	}
	save := d.saveOf(r)
	save.News = true
	d.saves = append(d.saves, save)
}
