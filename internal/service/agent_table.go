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

// agentTable is the agents that have an identity, and which of them are alive. It measures silence on the monotonic clock,
// so that a step of the wall clock ends nobody.
type agentTable struct {
	timeout time.Duration
	// change is held over a change of stored fields and of memory, so that the two agree. Never taken under mu.
	change sync.Mutex

	mu   sync.Mutex // guards byID and everything in its entries
	byID map[string]*agentEntry
}

type agentEntry struct {
	record  domain.AgentRecord
	seen    time.Time     // when it joined, called last, or its last call ended
	open    int           // heartbeats that are being answered
	held    chan struct{} // closed, and replaced, when another heartbeat is held
	unsaved bool          // heartbeats changed it since it was saved
	sentTo  assignment    // where the last answer to a heartbeat sent it
	changed chan struct{} // closed, and replaced, when its assignment changes; closed when it is removed
	removed bool
	failing time.Time // when its command failed first; zero where it has not, or was well since
}

// recoveredAfter is how long a command must run after a failure to count as well again.
const recoveredAfter = time.Minute

// failingSince is when the agent's command began to fail, zero while all is well.
func (e *agentEntry) failingSince() time.Time {
	if e.record.State == domain.AgentRunning && time.Since(e.record.StateSince) >= recoveredAfter {
		return time.Time{}
	}
	return e.failing
}

// failingIn is what failing becomes with the state that was just said.
func (e *agentEntry) failingIn(state domain.AgentState) time.Time {
	since := e.failingSince()
	switch {
	case state == domain.AgentIdle || state == domain.AgentStopped:
		return time.Time{}
	case state == domain.AgentFailed && since.IsZero():
		return e.record.LastSeen
	}
	return since
}

// assignment is where an agent works, zero for nowhere.
type assignment struct{ project, url string }

func assignmentOf(a domain.Agent) assignment {
	return assignment{a.Project, a.ProjectURL}
}

// loadAgentTable loads the agents from the store. One last seen in the
// future, by today's wall clock, counts as seen just now.
func loadAgentTable(ctx context.Context, store agentStore, timeout time.Duration) (*agentTable, error) {
	records, err := store.AgentRecords(ctx)
	if err != nil {
		return nil, err
	}
	table := &agentTable{timeout: timeout, byID: make(map[string]*agentEntry, len(records))}
	now := time.Now()
	for _, r := range records {
		silent := max(0, now.Sub(r.LastSeen))
		table.add(r, now.Add(-silent))
	}
	return table, nil
}

func (t *agentTable) add(r domain.AgentRecord, seen time.Time) *agentEntry {
	e := &agentEntry{record: r, seen: seen, changed: make(chan struct{})}
	if r.State == domain.AgentFailed {
		e.failing = r.StateSince
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.byID[r.ID] = e
	return e
}

func (t *agentTable) find(id string) *agentEntry {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.byID[id]
}

// secretHash returns the hash of an agent's secret, "" (the hash of nothing) for an unknown id.
func (t *agentTable) secretHash(id string) string {
	if e := t.find(id); e != nil {
		return e.record.SecretHash // never changes
	}
	return ""
}

// begin records a heartbeat of an agent, which is open until end. Nil when the id is unknown.
func (t *agentTable) begin(id string, b Heartbeat) *agentEntry {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.byID[id]
	if e == nil {
		return nil
	}
	e.open++
	e.touch(time.Now())
	state := e.record.State
	if state == domain.AgentStopped {
		state = domain.AgentIdle
	}
	if b.State != nil {
		state = *b.State
	}
	if state != e.record.State {
		e.failing = e.failingIn(state)
		e.record.State, e.record.StateSince = state, e.record.LastSeen
	}
	if b.Detail != nil {
		e.record.Detail = strings.Clone(*b.Detail) // not a part of the whole body
	}
	return e
}

// hold ends the heartbeat of the agent that is being held, and returns what the next one closes.
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
	e.touch(time.Now())
}

func (e *agentEntry) touch(now time.Time) {
	e.seen, e.record.LastSeen, e.unsaved = now, now, true
}

// touchOpen counts every agent with an open heartbeat as seen now.
func (t *agentTable) touchOpen() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range t.byID {
		if e.open > 0 {
			e.touch(time.Now())
		}
	}
}

// knownAssignment returns the assignment of an agent that says it is assigned to project, as that agent knows it. Its url is "" if
// no heartbeat of it was answered yet.
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

// get returns an agent as it is now and a channel that is closed when its assignment changes; false when it is removed.
func (t *agentTable) get(e *agentEntry, registry *domain.Registry) (domain.Agent, <-chan struct{}, bool) {
	if e == nil {
		return domain.Agent{}, nil, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return e.view(registry), e.changed, !e.removed
}

func (t *agentTable) view(e *agentEntry, registry *domain.Registry) domain.Agent {
	t.mu.Lock()
	defer t.mu.Unlock()
	return e.view(registry)
}

// view is the agent as callers see it. An assignment to a project that is just being removed shows as none.
func (e *agentEntry) view(registry *domain.Registry) domain.Agent {
	r := e.record
	a := domain.Agent{
		ID: r.ID, Label: r.Label, Version: r.Version, State: r.State, Detail: r.Detail,
		JoinedAt: r.JoinedAt, LastSeen: r.LastSeen,
	}
	if p, ok := registry.Find(r.Project); ok {
		a.Project, a.ProjectURL = p.Name, p.URL
	}
	return a
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

// known returns the agent of that id, false when there is none.
func (t *agentTable) known(id string, registry *domain.Registry) (domain.KnownAgent, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.byID[id]
	if e == nil {
		return domain.KnownAgent{}, false
	}
	return t.describe(e, registry), true
}

func (t *agentTable) describe(e *agentEntry, registry *domain.Registry) domain.KnownAgent {
	return domain.KnownAgent{
		Agent: e.view(registry), Presence: t.presence(e), Connected: e.open > 0, StateSince: e.record.StateSince,
		FailingSince: e.failingSince(),
	}
}

func (t *agentTable) presence(e *agentEntry) domain.AgentPresence {
	switch {
	case e.record.State == domain.AgentStopped:
		return domain.AgentLeft
	case e.open > 0 || time.Since(e.seen) <= t.timeout:
		return domain.AgentAlive
	}
	return domain.AgentLost
}

func (t *agentTable) assign(e *agentEntry, project string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e.assign(project)
}

func (e *agentEntry) assign(project string) {
	e.record.Project = project
	close(e.changed)
	e.changed = make(chan struct{})
}

// unassign takes every agent off a project that is being removed, in memory; the store did so with the project. It
// returns their ids.
func (t *agentTable) unassign(project string) []string {
	t.change.Lock()
	defer t.change.Unlock()
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

// unassigned returns those of these ids whose agents have an identity and are assigned to no project.
func (t *agentTable) unassigned(ids []string) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(ids), func(id string) bool {
		e := t.byID[id]
		return e == nil || e.record.Project != ""
	})
}

func (t *agentTable) label(e *agentEntry, label string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e.record.Label = label
}

func (t *agentTable) remove(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.byID[id]
	delete(t.byID, id)
	e.removed = true
	close(e.changed)
}

// silent returns the ids of the agents that were not seen for longer than d.
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

// takeBeats returns what heartbeats changed since the last call.
func (t *agentTable) takeBeats() []domain.AgentBeat {
	t.mu.Lock()
	defer t.mu.Unlock()
	var beats []domain.AgentBeat
	for _, e := range t.byID {
		if e.unsaved {
			e.unsaved = false
			r := e.record
			beats = append(beats, domain.AgentBeat{
				ID: r.ID, State: r.State, Detail: r.Detail, StateSince: r.StateSince, LastSeen: r.LastSeen,
			})
		}
	}
	return beats
}

// returnBeats marks agents as unsaved again.
func (t *agentTable) returnBeats(beats []domain.AgentBeat) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, b := range beats {
		if e := t.byID[b.ID]; e != nil {
			e.unsaved = true
		}
	}
}
