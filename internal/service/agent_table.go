package service

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
)

// agentTable holds every agent with an identity. Silence is measured by the monotonic clock: changing the wall clock
// must not lose agents.
type agentTable struct {
	table[string, *agentEntry]
	timeout time.Duration
	store   *database
	saving  sync.Mutex // held while heartbeats are stored; taken after change
}

func newAgentTable(o Options) *agentTable {
	t := &agentTable{timeout: o.AgentTimeout, store: o.store}
	t.table = table[string, *agentEntry]{
		read: t.records, key: func(e *agentEntry) string { return e.record.ID },
		same: func(a, b *agentEntry) bool { return a == b },
		edited: func(gone, _ []*agentEntry) {
			for _, e := range gone {
				e.remove()
			}
		},
	}
	t.reloader = newReloader(o.Changes, domain.TopicAgents, t.load)
	return t
}

// records reads the agents in the store, which other gateways may change as well, and updates those in memory.
func (t *agentTable) records(ctx context.Context) ([]*agentEntry, error) {
	t.saving.Lock()
	defer t.saving.Unlock()
	stored, err := t.store.AgentRecords(ctx)
	now := time.Now()
	return domain.Map(stored, func(r domain.AgentRecord) *agentEntry {
		seen := now.Add(-max(0, clock.Of(now).Sub(r.LastSeen))) // never in the future: the wall clock may have been wrong
		e, known := t.get(r.ID)
		if !known {
			return newAgentEntry(r, seen, t.timeout)
		}
		e.apply(r, seen)
		return e
	}), err
}

func (t *agentTable) label(id string) (label string) {
	if e, known := t.get(id); known {
		e.with(func() { label = e.record.Label })
	}
	return label
}

// nameOf returns a readable name for who made a change: the label of an agent, or the name of a token or person.
func (t *agentTable) nameOf(a domain.Actor) string {
	if a.AgentID == "" {
		return domain.CutText(a.Who)
	}
	return cmp.Or(t.label(a.AgentID), a.AgentID)
}

// touchOpen marks every agent with an open heartbeat as seen now.
func (t *agentTable) touchOpen() {
	for _, e := range t.list() {
		e.with(func() {
			if e.open > 0 && (e.ours || e.unsaved) {
				e.touch(time.Now())
			}
		})
	}
}

func (t *agentTable) registered(registry *domain.Registry) []domain.RegisteredAgent {
	agents := domain.Map(t.list(), func(e *agentEntry) domain.RegisteredAgent { return e.registered(registry) })
	slices.SortFunc(agents, func(a, b domain.RegisteredAgent) int {
		return cmp.Or(cmp.Compare(a.Label, b.Label), cmp.Compare(a.ID, b.ID))
	})
	return agents
}

// withoutProject returns those of the ids whose agents exist and are assigned to no project.
func (t *agentTable) withoutProject(ids []string) []string {
	return slices.DeleteFunc(slices.Clone(ids), func(id string) bool {
		e, known := t.get(id)
		return !known || e.project() != ""
	})
}

// assign assigns agents in memory, after the store has. The caller holds change.
func (t *agentTable) assign(project string, ids ...string) {
	for _, id := range ids {
		if e, known := t.get(id); known {
			e.with(func() { e.assign(project) })
		}
	}
}

func (t *agentTable) silent(d time.Duration) []string {
	return t.keys(func(e *agentEntry) (is bool) {
		e.with(func() { is = e.open == 0 && time.Since(e.seen) > d })
		return is
	})
}

const (
	// beatInterval is how often due heartbeats are stored; a crash loses at most one interval.
	beatInterval = 250 * time.Millisecond
	// flushLimit is how long the response to a heartbeat waits for the store.
	flushLimit = time.Second
)

// save stores what heartbeats have changed. Agents that were merely seen again are stored less often unless all is set:
// with thousands of healthy agents that would be many writes.
func (t *agentTable) save(ctx context.Context, all bool) error {
	t.saving.Lock()
	defer t.saving.Unlock()
	var beats []domain.AgentBeat
	var entries []*agentEntry
	now := time.Now()
	for _, e := range t.list() {
		if beat, due := e.takeBeat(now, all); due {
			beats, entries = append(beats, beat), append(entries, e)
		}
	}
	if len(beats) == 0 {
		return nil
	}
	err := t.store.SaveBeats(ctx, beats)
	now = time.Now()
	for i, e := range entries {
		e.with(func() {
			if err != nil {
				e.unsaved, e.news = true, true
				return
			}
			e.ours, e.storedSeen, e.savedAt = true, beats[i].LastSeen.UnixMilli(), now
		})
	}
	return err
}
