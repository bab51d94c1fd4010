package service

import (
	"context"
	"time"

	"switchyard/internal/domain"
)

const (
	// beatInterval is how often heartbeats are stored. A crash can lose those of one interval. If other gateways share the store,
	// it is sharedBeatInterval.
	beatInterval, sharedBeatInterval = time.Second, 250 * time.Millisecond
	// quietAfter is how long an agent may have no open heartbeat before its last one is stored for other gateways to see. A healthy
	// agent sends the next one at once.
	quietAfter = time.Second
	// flushLimit is how long the response to a heartbeat waits for the store.
	flushLimit = time.Second
)

// interval returns how often heartbeats are stored.
func (t *agentTable) interval() time.Duration {
	if t.changes == nil {
		return beatInterval
	}
	return sharedBeatInterval
}

// save stores what heartbeats have changed. If other gateways share the store, agents that were merely seen again are stored less
// often, unless all is set: those of thousands of healthy agents would be many writes.
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

// flush stores an agent's heartbeat before it is answered, so that the next one, to whichever gateway, is stored after it.
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

// takeBeats returns the changes by heartbeats that are due to be stored.
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

// isDue reports whether an agent's heartbeats must be stored now for other gateways: the agent has reported something new, has
// begun or stopped calling this gateway, or was last stored too long ago. The caller holds mu.
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
