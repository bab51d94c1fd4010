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

// agentTable holds all agents that have an identity, alive or not. It measures silence with the monotonic clock, so
// that setting the wall clock does not make agents disappear.
type agentTable struct {
	timeout time.Duration
	store   *database
	changes Changes // nil if no other gateway shares the store
	stored  *reloader
	// change is held while stored fields and memory are changed, so that the two agree. It is taken before mu.
	change sync.Mutex
	// saving is held while heartbeats are stored. It is taken after change and before mu.
	saving sync.Mutex

	mu   sync.Mutex // guards byID and everything in its entries
	byID map[string]*agentEntry
}

// load brings the table up to date with the store, which other gateways may change as well.
func (t *agentTable) load(ctx context.Context) error {
	t.change.Lock() // a change of our own is in both, or in neither
	defer t.change.Unlock()
	t.saving.Lock()
	defer t.saving.Unlock()
	records, err := t.store.AgentRecords(ctx)
	if err != nil {
		return err
	}
	now, stored := time.Now(), make(map[string]bool, len(records))
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range records {
		stored[r.ID] = true
		seen := now.Add(-max(0, clock.Of(now).Sub(r.LastSeen))) // never in the future: the wall clock may have been wrong
		if e := t.byID[r.ID]; e != nil {
			e.apply(r, seen)
		} else {
			t.insert(r, seen)
		}
	}
	for id := range t.byID {
		if !stored[id] {
			t.drop(id)
		}
	}
	return nil
}

// insert adds an agent that was last seen at seen. The caller holds mu.
func (t *agentTable) insert(r domain.AgentRecord, seen time.Time) *agentEntry {
	e := &agentEntry{
		mu: &t.mu, timeout: t.timeout, record: r, seen: seen, storedSeen: r.LastSeen.UnixMilli(),
		changed: make(chan struct{}),
	}
	if r.State == domain.AgentFailed {
		e.failing = r.StateSince
	}
	t.byID[r.ID] = e
	return e
}

func (t *agentTable) find(id string) *agentEntry {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.byID[id]
}

// label returns the label of an agent, "" for an unknown id.
func (t *agentTable) label(id string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.byID[id]; e != nil {
		return e.record.Label
	}
	return ""
}

// nameOf returns who has made a change, as people read it: the label of an agent, or the name of a token or person.
func (t *agentTable) nameOf(a domain.Actor) string {
	if a.AgentID == "" {
		return domain.CutText(a.Who)
	}
	return cmp.Or(t.label(a.AgentID), a.AgentID)
}

func (t *agentTable) remove(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drop(id)
}

// drop removes an agent, which must exist. The caller holds mu.
func (t *agentTable) drop(id string) {
	e := t.byID[id]
	delete(t.byID, id)
	e.removed = true
	close(e.changed)
}

// touchOpen marks every agent with an open heartbeat as seen now.
func (t *agentTable) touchOpen() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range t.byID {
		if e.open > 0 && (e.ours || e.unsaved) {
			e.touch(time.Now())
		}
	}
}

func (t *agentTable) list(registry *domain.Registry) []domain.KnownAgent {
	t.mu.Lock()
	agents := make([]domain.KnownAgent, 0, len(t.byID))
	for _, e := range t.byID {
		agents = append(agents, e.known(registry))
	}
	t.mu.Unlock()
	slices.SortFunc(agents, func(a, b domain.KnownAgent) int {
		return cmp.Or(cmp.Compare(a.Label, b.Label), cmp.Compare(a.ID, b.ID))
	})
	return agents
}

// unassign removes, in memory, the assignments to a project that is being removed; the store removes them with the
// project. It returns the agents' ids. The caller holds change.
func (t *agentTable) unassign(project string) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var ids []string
	for id, e := range t.byID {
		if e.record.Project == project {
			e.assign("")
			ids = append(ids, id)
		}
	}
	return ids
}

// unassigned returns those of the ids whose agents exist and are assigned to no project.
func (t *agentTable) unassigned(ids []string) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(ids), func(id string) bool {
		e := t.byID[id]
		return e == nil || e.record.Project != ""
	})
}

func (t *agentTable) silent(d time.Duration) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var ids []string
	for id, e := range t.byID {
		if e.open == 0 && time.Since(e.seen) > d {
			ids = append(ids, id)
		}
	}
	return ids
}

const (
	// beatInterval is how often heartbeats that are due are stored. A crash can lose what agents said in one interval.
	beatInterval = 250 * time.Millisecond
	// flushLimit is how long the response to a heartbeat waits for the store.
	flushLimit = time.Second
)

// save stores what heartbeats have changed. Agents that were merely seen again are stored less often, unless all is
// set: those of thousands of healthy agents would be many writes.
func (t *agentTable) save(ctx context.Context, all bool) error {
	t.saving.Lock()
	defer t.saving.Unlock()
	beats := t.takeBeats(all)
	if len(beats) == 0 {
		return nil
	}
	err := t.store.SaveBeats(ctx, beats)
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, b := range beats {
		e := t.byID[b.ID]
		switch {
		case e == nil:
		case err == nil:
			e.ours, e.storedSeen, e.savedAt = true, b.LastSeen.UnixMilli(), now
		default:
			e.unsaved, e.news = true, true
		}
	}
	return err
}

// takeBeats returns the changes by heartbeats that are due to be stored.
func (t *agentTable) takeBeats(all bool) []domain.AgentBeat {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	var beats []domain.AgentBeat
	for _, e := range t.byID {
		if !e.unsaved || !all && !e.isDue(now) {
			continue
		}
		beats = append(beats, domain.AgentBeat{Agent: e.record.Agent, OnlySeen: !e.news})
		e.unsaved, e.news = false, false
	}
	return beats
}
