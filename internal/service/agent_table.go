package service

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"switchyard/internal/domain"
)

// agentTable holds all agents that have an identity, alive or not. It measures silence with the monotonic clock, so that setting
// the wall clock does not make agents disappear.
type agentTable struct {
	timeout time.Duration
	store   agentStore
	changes Changes // nil if no other gateway shares the store
	stored  *reloader
	// change is held while stored fields and memory are changed, so that the two agree. It is never taken while holding mu.
	change sync.Mutex
	// saving is held while heartbeats are stored. It is taken after change, never while holding mu.
	saving   sync.Mutex
	position int64 // the last change in the store that has been applied

	mu   sync.Mutex // guards byID and everything in its entries
	byID map[string]*agentEntry
}

// loadAgentTable loads the agents from the store.
func loadAgentTable(ctx context.Context, store agentStore, changes Changes, timeout time.Duration) (*agentTable, error) {
	t := &agentTable{timeout: timeout, store: store, changes: changes, byID: map[string]*agentEntry{}}
	t.stored = newReloader(changes, domain.TopicAgents, t.load)
	t.stored.always = true
	return t, t.load(ctx)
}

func (t *agentTable) add(r domain.AgentRecord, seen time.Time) *agentEntry {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.insert(r, seen)
}

// insert is add; the caller holds mu.
func (t *agentTable) insert(r domain.AgentRecord, seen time.Time) *agentEntry {
	e := &agentEntry{record: r, seen: seen, storedSeen: r.LastSeen.UnixMilli(), changed: make(chan struct{})}
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

// secretHash returns the hash of an agent's secret, "" (which no secret has) for an unknown id.
func (t *agentTable) secretHash(id string) string {
	if e := t.find(id); e != nil {
		return e.record.SecretHash // never changes
	}
	return ""
}

// begin records a heartbeat, which is open until end is called. It returns nil for an unknown id.
func (t *agentTable) begin(id string, b Heartbeat) *agentEntry {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.byID[id]
	if e == nil {
		return nil
	}
	e.open++
	e.began = time.Now()
	e.touch(e.began)
	e.news = e.news || t.changes != nil && !e.ours && (b.State != nil || b.Detail != nil) // the state in memory may be outdated
	state := e.record.State
	if state == domain.AgentStopped {
		state = domain.AgentIdle
	}
	if b.State != nil {
		state = *b.State
	}
	if state != e.record.State {
		e.setState(state, e.record.LastSeen)
		e.news = true
	}
	if b.Detail != nil && *b.Detail != e.record.Detail {
		e.record.Detail = strings.Clone(*b.Detail) // not a part of the whole body
		e.news = true
	}
	return e
}

// hold ends the agent's heartbeat that is being held, and returns a channel that the next one closes.
func (t *agentTable) hold(e *agentEntry) (superseded <-chan struct{}) {
	if e == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if e.held != nil {
		close(e.held)
	}
	e.held = make(chan struct{})
	return e.held
}

func (t *agentTable) end(e *agentEntry) {
	if e == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	e.open--
	if e.seen = time.Now(); e.ours || e.unsaved { // otherwise it has called another gateway since
		e.touch(e.seen)
	}
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

// knownAssignment returns the assignment that an agent that reports project knows. Its url is "" if no heartbeat of it has been
// answered yet.
func (t *agentTable) knownAssignment(e *agentEntry, project string) assignment {
	if e != nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		if e.sentTo.project == project {
			return e.sentTo
		}
	}
	return assignment{project: project}
}

func (t *agentTable) setSentTo(e *agentEntry, p assignment) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e.sentTo = p
}

// get returns an agent's current state and a channel that is closed when its assignment changes. It returns false when the agent
// has been removed.
func (t *agentTable) get(e *agentEntry, registry *domain.Registry) (domain.Agent, <-chan struct{}, bool) {
	if e == nil {
		return domain.Agent{}, nil, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return e.view(registry), e.changed, !e.removed
}

// list returns every agent, ordered by label, then id.
func (t *agentTable) list(registry *domain.Registry) []domain.KnownAgent {
	t.mu.Lock()
	agents := make([]domain.KnownAgent, 0, len(t.byID))
	for _, e := range t.byID {
		agents = append(agents, t.describe(e, registry))
	}
	t.mu.Unlock()
	slices.SortFunc(agents, func(a, b domain.KnownAgent) int {
		return cmp.Or(cmp.Compare(a.Label, b.Label), cmp.Compare(a.ID, b.ID))
	})
	return agents
}

// known returns the agent with that id, false when there is none.
func (t *agentTable) known(id string, registry *domain.Registry) (domain.KnownAgent, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.byID[id]
	if e == nil {
		return domain.KnownAgent{}, false
	}
	return t.describe(e, registry), true
}
