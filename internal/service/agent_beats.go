package service

import (
	"context"
	"time"

	"switchyard/internal/domain"
)

const (
	// beatInterval is how long a heartbeat waits to be stored: what a crash can lose. Where other gateways need to know it, it is
	// sharedBeatInterval.
	beatInterval, sharedBeatInterval = time.Second, 250 * time.Millisecond
	// quietAfter is how long an agent may have no open heartbeat before other gateways are told when it was seen last. A healthy
	// agent calls again at once.
	quietAfter = time.Second
	// flushLimit is how long the answer to a heartbeat waits for the store.
	flushLimit = time.Second
)

// interval is how often heartbeats are written.
func (t *agentTable) interval() time.Duration {
	if t.changes == nil {
		return beatInterval
	}
	return sharedBeatInterval
}

// save stores what heartbeats have changed. Where other gateways share the store, agents that were merely seen again wait unless
// all is set: thousands of healthy agents are no news.
func (t *agentTable) save(ctx context.Context, all bool) error {
	t.saving.Lock()
	defer t.saving.Unlock()
	beats := t.takeBeats(all)
	if len(beats) == 0 {
		return nil
	}
	err := t.store.SaveBeats(ctx, beats)
	t.beatsSaved(beats, err == nil)
	return err
}

// flush stores what an agent has just said before it gets its answer, so that what it says next, to whichever gateway, is stored
// later.
func (t *agentTable) flush(ctx context.Context, e *agentEntry) {
	if t.changes == nil {
		return
	}
	t.mu.Lock()
	news := e.news
	t.mu.Unlock()
	if news {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushLimit)
		defer cancel()
		_ = t.save(ctx, false) // it is stored later then
	}
}

// takeBeats returns what heartbeats changed and is due to be written.
func (t *agentTable) takeBeats(all bool) []domain.AgentBeat {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	var beats []domain.AgentBeat
	for _, e := range t.byID {
		if !e.unsaved || !all && !t.isDue(e, now) {
			continue
		}
		r := e.record
		beats = append(beats, domain.AgentBeat{
			ID: r.ID, OnlySeen: !e.news, State: r.State, Detail: r.Detail, StateSince: r.StateSince, LastSeen: r.LastSeen,
		})
		e.unsaved, e.news = false, false
	}
	return beats
}

// isDue reports whether other gateways have to know now what an agent's heartbeats have changed: what it said, that it calls
// here, that it has stopped calling, or, in time, that it lives. Callers hold mu.
func (t *agentTable) isDue(e *agentEntry, now time.Time) bool {
	return t.changes == nil || e.news || !e.ours || now.Sub(e.savedAt) >= t.timeout/3 || e.open == 0 && now.Sub(e.seen) >= quietAfter
}

// beatsSaved records whether beats were stored.
func (t *agentTable) beatsSaved(beats []domain.AgentBeat, stored bool) {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, b := range beats {
		e := t.byID[b.ID]
		switch {
		case e == nil:
		case stored:
			e.ours, e.storedSeen, e.savedAt = true, b.LastSeen.UnixMilli(), now
		default:
			e.unsaved, e.news = true, true
		}
	}
}
