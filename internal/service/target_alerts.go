package service

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"switchyard/internal/domain"
)

const (
	// maxKey is how long an alert's key may be in a message's id and in the list, in bytes: ids are headers, which
	// proxies limit.
	maxKey = 64
	// maxAlike is how many alerts of one kind and project a target is told singly within a minute.
	maxAlike = 10
	// maxLeft is how many alerts are kept for a target that are acknowledged or not visible when their turn comes.
	maxLeft = domain.MaxAlerts
)

func shortKey(key string) string {
	if len(key) > maxKey {
		key = fmt.Sprintf("%x", sha256.Sum256([]byte(key)))[:32]
	}
	return key
}

type listedAlert struct {
	domain.AlertRecord
	alert  domain.Alert // as last seen, if ever
	stands bool
	after  int64     // events up to this one are told before it
	gone   time.Time // since when it has been over; zero while unknown
}

// alertList has the open alerts, in the order in which they were noticed, while any target gets alerts. A target holds
// a position in it.
type alertList struct {
	byKey map[string]*listedAlert
	list  []*listedAlert // by Seq
	last  int64          // the last Seq assigned
	// undated are the alerts whose beginning is still unknown: since when.
	undated map[string]time.Time
}

// isDated reports whether it is known when an alert began. If only boards show it, that takes a moment.
func isDated(a domain.Alert) bool {
	switch a.Kind {
	case domain.AlertBlocked:
		return !a.Story.BlockedSince.IsZero()
	case domain.AlertMerge:
		return !a.Story.MergeFailedSince.IsZero()
	}
	return true
}

func newAlertList(stored []domain.AlertRecord) *alertList {
	l := &alertList{byKey: map[string]*listedAlert{}}
	for _, a := range stored {
		n := &listedAlert{AlertRecord: a}
		l.byKey[a.Key], l.last = n, a.Seq
		l.list = append(l.list, n)
	}
	return l
}

// look brings the list up to date, and returns what has changed in it.
func (l *alertList) look(all []domain.Alert, isOver func(domain.AlertRecord) bool, after int64, now time.Time) (
	news []domain.AlertRecord, over []string,
) {
	var fresh []*listedAlert
	stands := make(map[string]bool, len(all))
	undated := map[string]time.Time{}
	for _, a := range all {
		key := shortKey(a.Key())
		stands[key] = true
		n := l.byKey[key]
		if !isDated(a) && n == nil {
			since, known := l.undated[key]
			if !known {
				since = now
			}
			if undated[key] = since; now.Sub(since) < alertGrace {
				continue
			}
		}
		again := n != nil && (a.Kind == domain.AlertBlocked || a.Kind == domain.AlertMerge) &&
			a.Since.UnixMilli() > n.SinceMS
		if n == nil || again {
			n = &listedAlert{after: after, AlertRecord: domain.AlertRecord{
				Key: key, Kind: a.Kind, Project: a.Project, SinceMS: a.Since.UnixMilli(),
			}}
			l.byKey[key], fresh = n, append(fresh, n)
		}
		n.alert, n.gone = a, time.Time{}
	}
	slices.SortFunc(fresh, func(a, b *listedAlert) int {
		return cmp.Or(cmp.Compare(a.SinceMS, b.SinceMS), cmp.Compare(a.Key, b.Key))
	})
	for _, n := range fresh {
		l.last = max(l.last+1, now.UnixMicro())
		n.Seq = l.last
		l.list, news = append(l.list, n), append(news, n.AlertRecord)
	}
	for key, n := range l.byKey {
		n.stands = stands[key]
		switch {
		case n.stands || !isOver(n.AlertRecord):
		case n.gone.IsZero():
			n.gone = now
		case now.Sub(n.gone) >= alertGrace:
			delete(l.byKey, key)
			over = append(over, key)
		}
	}
	l.undated = undated
	l.list = slices.DeleteFunc(l.list, func(n *listedAlert) bool { return l.byKey[n.Key] != n })
	return news, over
}

// wait finds the alerts that a target must still be told of, in order, and moves it past the others.
func (l *alertList) wait(r *targetState) {
	p := &r.Progress
	r.alerts = nil
	switch {
	case !p.AlertsFrom.IsZero(): // what was open then is not news
		p.Left = map[string]int64{}
		for _, n := range l.list {
			if n.SinceMS > p.AlertsFrom.UnixMilli() && r.Wants(n.alert) {
				r.leave(n)
			}
		}
		p.Alerts, p.AlertsFrom = l.last, time.Time{}
	case p.Alerts == 0: // an earlier version told it of alerts
		p.Alerts = l.last
	}
	for key, seq := range p.Left {
		switch n := l.byKey[key]; {
		case n == nil || n.Seq != seq:
			delete(p.Left, key)
		case n.isNews(r):
			r.alerts = append(r.alerts, n)
		}
	}
	slices.SortFunc(r.alerts, func(a, b *listedAlert) int { return cmp.Compare(a.Seq, b.Seq) })
	at, _ := slices.BinarySearchFunc(l.list, p.Alerts+1, func(n *listedAlert, seq int64) int {
		return cmp.Compare(n.Seq, seq)
	})
	waits := false
	for _, n := range l.list[at:] {
		switch {
		case p.Left[n.Key] == n.Seq:
		case n.isNews(r):
			waits = true
			r.alerts = append(r.alerts, n)
		case n.alert.Kind == "" || r.Wants(n.alert):
			r.leave(n)
		}
	}
	if !waits {
		p.Alerts = max(p.Alerts, l.last)
	}
}

// isNews reports whether a target is told of an alert when its turn comes.
func (n *listedAlert) isNews(r *targetState) bool {
	return n.stands && n.alert.Acknowledged == nil && r.Wants(n.alert)
}

func (r *targetState) leave(n *listedAlert) {
	if r.Progress.Left == nil {
		r.Progress.Left = map[string]int64{}
	}
	if len(r.Progress.Left) < maxLeft {
		r.Progress.Left[n.Key] = n.Seq
	}
}

func (r *targetState) pass(n *listedAlert) {
	p := &r.Progress
	if p.Left[n.Key] == n.Seq {
		delete(p.Left, n.Key)
	} else {
		p.Alerts = max(p.Alerts, n.Seq)
	}
	at := slices.IndexFunc(r.alerts, func(other *listedAlert) bool { return other.AlertRecord == n.AlertRecord })
	switch {
	case at == 0: // nearly always, and there may be thousands
		r.alerts = r.alerts[1:]
	case at > 0:
		r.alerts = slices.Delete(r.alerts, at, at+1)
	}
}

// group is what similar alerts share; only some of a group are told singly.
func (n *listedAlert) group() string { return string(n.Kind) + "/" + n.Project }

// alertMinute counts, by group, the alerts that a target was told singly within a minute.
type alertMinute struct {
	began time.Time
	told  map[string]int
}

// nextAlert returns the alert that a target is told of next, nil for none. It counts those beyond maxAlike.
func (d *deliverer) nextAlert(r *targetState, now time.Time) *listedAlert {
	p := &r.Progress
	m := &r.minute
	if minute := now.Truncate(time.Minute); !minute.Equal(m.began) {
		*m = alertMinute{minute, map[string]int{}}
		if minute.Equal(p.OverAt) { // before a restart
			for alike := range p.Over {
				m.told[alike] = maxAlike
			}
		}
	}
	counted := len(r.alerts)
	defer func() {
		if len(r.alerts) < counted {
			d.saves = append(d.saves, d.saveOf(r))
		}
	}()
	for len(r.alerts) > 0 {
		n := r.alerts[0]
		if m.told[n.group()] < maxAlike || p.Message != "" {
			return n
		}
		if p.Over == nil {
			p.Over = map[string]int{}
		}
		p.Over[n.group()]++
		p.OverAt = m.began
		r.pass(n)
	}
	return nil
}

// current returns all alerts, and whether one that is not among them is over.
func (s *Alerts) current(ctx context.Context) (all []domain.Alert, isOver func(domain.AlertRecord) bool) {
	boards := s.pipelines.Boards(ctx, quietAge)
	unknown := unknownAlerts(boards.Pipelines)
	return s.all(boards), func(a domain.AlertRecord) bool {
		return s.isOver(a.Kind, unknown(a.Project, a.Key))
	}
}

// noteAlerts updates the list of alerts, if any target gets alerts, and what waits for each target.
func (d *deliverer) noteAlerts(ctx context.Context, now time.Time) error {
	gets := func(r *targetState) bool { return len(r.Rules.Alerts) > 0 }
	var news []domain.AlertRecord
	var over []string
	wanted := false
	for _, r := range d.targets {
		wanted = wanted || gets(r)
	}
	if wanted {
		all, isOver := d.alerts.current(ctx)
		news, over = d.alertList.look(all, isOver, d.scanned, now)
	} else {
		for key := range d.alertList.byKey {
			over = append(over, key)
		}
		d.alertList = &alertList{byKey: map[string]*listedAlert{}, last: d.alertList.last}
	}
	if len(news)+len(over) > 0 {
		if err := d.store.SaveAlerts(ctx, d.token, news, over); err != nil {
			d.alertList = nil // so that it is read again
			return err
		}
	}
	for _, r := range d.targets {
		if gets(r) {
			d.alertList.wait(r)
		}
	}
	return nil
}
