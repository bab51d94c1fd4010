package service

import (
	"context"
	"slices"
	"time"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
)

// load brings the table up to date with the store. If other gateways share the store, it reads only what is new.
func (t *agentTable) load(ctx context.Context) error {
	t.change.Lock() // a change of our own is in both, or in neither
	defer t.change.Unlock()
	t.saving.Lock()
	defer t.saving.Unlock()
	if t.changes == nil {
		return t.loadAll(ctx)
	}
	news, err := t.changes.AgentsSince(ctx, t.position)
	if err == nil && news.Position < t.position { // a standby database that lacks the last transactions has taken over
		news, err = t.changes.AgentsSince(ctx, 0)
	}
	if err != nil {
		return err
	}
	if gone := t.apply(news); gone {
		ids, err := t.changes.AgentIDs(ctx)
		if err != nil {
			return err
		}
		t.removeOthers(ids)
	}
	t.position = news.Position
	return nil
}

// loadAll reads all agents. One last seen in the future, because the wall clock was wrong, counts as seen just now.
func (t *agentTable) loadAll(ctx context.Context) error {
	records, err := t.store.AgentRecords(ctx)
	if err != nil {
		return err
	}
	now := time.Now()
	for _, r := range records {
		t.add(r, now.Add(-max(0, clock.Of(now).Sub(r.LastSeen))))
	}
	return nil
}

// apply applies changes in the store. It reports whether agents have been removed.
func (t *agentTable) apply(news domain.AgentNews) (gone bool) {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range news.Changed {
		seen := now.Add(-max(0, r.Silent))
		if e := t.byID[r.ID]; e != nil {
			e.apply(r.AgentRecord, seen)
		} else {
			t.insert(r.AgentRecord, seen)
		}
	}
	return len(t.byID) != news.Count
}

// apply applies the stored record of an agent that was last seen at seen.
func (e *agentEntry) apply(r domain.AgentRecord, seen time.Time) {
	e.record.Label = r.Label
	if e.record.Project != r.Project {
		e.assign(r.Project)
	}
	elsewhere := r.LastSeen.UnixMilli() != e.storedSeen // otherwise this gateway has stored it, or applied it already
	if elsewhere {
		e.storedSeen, e.ours = r.LastSeen.UnixMilli(), false
		if seen.After(e.seen) {
			e.seen = seen
		}
	}
	if e.news { // its newer report to this gateway is stored next
		return
	}
	e.setState(r.State, r.StateSince)
	e.record.Detail = r.Detail
	if !elsewhere || e.open > 0 && e.began.After(seen) { // it has called here since
		return
	}
	e.record.LastSeen, e.unsaved = r.LastSeen, false
	if e.held != nil { // it calls another gateway by now
		close(e.held)
		e.held = nil
	}
}

// removeOthers removes all agents but these.
func (t *agentTable) removeOthers(ids []string) {
	slices.Sort(ids)
	t.mu.Lock()
	defer t.mu.Unlock()
	for id := range t.byID {
		if _, known := slices.BinarySearch(ids, id); !known {
			t.drop(id)
		}
	}
}
