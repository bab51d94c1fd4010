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

	mu   sync.Mutex // guards byID and everything in its members
	byID map[string]*member
}

type member struct {
	record  domain.AgentRecord
	seen    time.Time     // when it joined, called last, or its last call ended
	open    int           // heartbeats that are being held
	unsaved bool          // heartbeats changed it since it was saved
	told    place         // where the last answer to a heartbeat sent it
	changed chan struct{} // closed, and replaced, when its assignment changes; closed when it is removed
	removed bool
}

// place is where an agent works, zero for nowhere.
type place struct{ project, url string }

func placeOf(a domain.Agent) place {
	if a.AssignedProject == nil {
		return place{}
	}
	return place{*a.AssignedProject, *a.ProjectURL}
}

// loadAgentTable loads the agents from the store. One that was last seen in the future, by today's wall clock, was seen just now.
func loadAgentTable(ctx context.Context, store agentStore, timeout time.Duration) (*agentTable, error) {
	records, err := store.AgentRecords(ctx)
	if err != nil {
		return nil, err
	}
	table := &agentTable{timeout: timeout, byID: make(map[string]*member, len(records))}
	now := time.Now()
	for _, r := range records {
		silent := max(0, time.Duration(now.UnixMilli()-r.LastSeenMS)*time.Millisecond)
		table.add(r, now.Add(-silent))
	}
	return table, nil
}

func (f *agentTable) add(r domain.AgentRecord, seen time.Time) *member {
	m := &member{record: r, seen: seen, changed: make(chan struct{})}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.byID[r.ID] = m
	return m
}

func (f *agentTable) find(id string) *member {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.byID[id]
}

// secretHash returns the hash of an agent's secret, "" (the hash of nothing) for an unknown id.
func (f *agentTable) secretHash(id string) string {
	if m := f.find(id); m != nil {
		return m.record.SecretHash // never changes
	}
	return ""
}

// begin records a heartbeat of an agent, which is open until end. Nil when the id is unknown.
func (f *agentTable) begin(id string, b Heartbeat) *member {
	f.mu.Lock()
	defer f.mu.Unlock()
	m := f.byID[id]
	if m == nil {
		return nil
	}
	m.open++
	m.see(time.Now())
	state := m.record.State
	if state == domain.AgentStopped {
		state = domain.AgentIdle
	}
	if b.State != nil {
		state = *b.State
	}
	if state != m.record.State {
		m.record.State, m.record.StateSinceMS = state, m.record.LastSeenMS
	}
	if b.Detail != nil {
		m.record.Detail = strings.Clone(*b.Detail) // not a part of the whole body
	}
	return m
}

func (f *agentTable) end(m *member) {
	if m == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	m.open--
	m.see(time.Now())
}

func (m *member) see(now time.Time) {
	m.seen, m.record.LastSeenMS, m.unsaved = now, now.UnixMilli(), true
}

// seeOpen counts every agent with an open heartbeat as seen now.
func (f *agentTable) seeOpen() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.byID {
		if m.open > 0 {
			m.see(time.Now())
		}
	}
}

// knownPlace returns the place of an agent that says it is assigned to project, as that agent knows it. Its url is "" if
// the agent was not told.
func (f *agentTable) knownPlace(m *member, project string) place {
	if m != nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		if m.told.project == project {
			return m.told
		}
	}
	return place{project: project}
}

func (f *agentTable) tell(m *member, p place) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m.told = p
}

// look returns an agent as it is now and a channel that is closed when its assignment changes; false when it is removed.
func (f *agentTable) look(m *member, registry *domain.Registry) (domain.Agent, <-chan struct{}, bool) {
	if m == nil {
		return domain.Agent{}, nil, false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return m.view(registry), m.changed, !m.removed
}

func (f *agentTable) view(m *member, registry *domain.Registry) domain.Agent {
	f.mu.Lock()
	defer f.mu.Unlock()
	return m.view(registry)
}

// view is the agent as the API shows it. An assignment to a project that is just being removed shows as none.
func (m *member) view(registry *domain.Registry) domain.Agent {
	r := m.record
	a := domain.Agent{
		ID: r.ID, Label: r.Label, Version: r.Version, State: r.State, Detail: r.Detail,
		JoinedAtMS: r.JoinedAtMS, LastSeenMS: r.LastSeenMS,
	}
	if p, ok := registry.Find(r.AssignedProject); ok {
		a.AssignedProject, a.ProjectURL = &p.Name, &p.URL
	}
	return a
}

// list returns every agent, ordered by label, then id.
func (f *agentTable) list(registry *domain.Registry) []domain.KnownAgent {
	f.mu.Lock()
	agents := make([]domain.KnownAgent, 0, len(f.byID))
	for _, m := range f.byID {
		agents = append(agents, f.describe(m, registry))
	}
	f.mu.Unlock()
	slices.SortFunc(agents, func(a, b domain.KnownAgent) int {
		return cmp.Or(cmp.Compare(a.Label, b.Label), cmp.Compare(a.ID, b.ID))
	})
	return agents
}

// known returns the agent of that id, false when there is none.
func (f *agentTable) known(id string, registry *domain.Registry) (domain.KnownAgent, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m := f.byID[id]
	if m == nil {
		return domain.KnownAgent{}, false
	}
	return f.describe(m, registry), true
}

func (f *agentTable) describe(m *member, registry *domain.Registry) domain.KnownAgent {
	return domain.KnownAgent{
		Agent: m.view(registry), Presence: f.presence(m), Connected: m.open > 0, StateSinceMS: m.record.StateSinceMS,
	}
}

func (f *agentTable) presence(m *member) domain.AgentPresence {
	switch {
	case m.record.State == domain.AgentStopped:
		return domain.AgentLeft
	case m.open > 0 || time.Since(m.seen) <= f.timeout:
		return domain.AgentAlive
	}
	return domain.AgentLost
}

func (f *agentTable) assign(m *member, project string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m.assign(project)
}

func (m *member) assign(project string) {
	m.record.AssignedProject = project
	close(m.changed)
	m.changed = make(chan struct{})
}

// unassign takes every agent off a project that is being removed, in memory; the store did so with the project. It
// returns their ids.
func (f *agentTable) unassign(project string) []string {
	f.change.Lock()
	defer f.change.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	var ids []string
	for id, m := range f.byID {
		if m.record.AssignedProject == project {
			m.assign("")
			ids = append(ids, id)
		}
	}
	return ids
}

// unassigned returns those of these ids whose agents have an identity and are assigned to no project.
func (f *agentTable) unassigned(ids []string) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(ids), func(id string) bool {
		m := f.byID[id]
		return m == nil || m.record.AssignedProject != ""
	})
}

func (f *agentTable) label(m *member, label string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m.record.Label = label
}

func (f *agentTable) remove(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m := f.byID[id]
	delete(f.byID, id)
	m.removed = true
	close(m.changed)
}

// silent returns the ids of the agents that were not seen for longer than d.
func (f *agentTable) silent(d time.Duration) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var ids []string
	for id, m := range f.byID {
		if m.open == 0 && time.Since(m.seen) > d {
			ids = append(ids, id)
		}
	}
	return ids
}

// takeBeats returns what heartbeats changed since the last call.
func (f *agentTable) takeBeats() []domain.AgentBeat {
	f.mu.Lock()
	defer f.mu.Unlock()
	var beats []domain.AgentBeat
	for _, m := range f.byID {
		if m.unsaved {
			m.unsaved = false
			r := m.record
			beats = append(beats, domain.AgentBeat{
				ID: r.ID, State: r.State, Detail: r.Detail, StateSinceMS: r.StateSinceMS, LastSeenMS: r.LastSeenMS,
			})
		}
	}
	return beats
}

// returnBeats marks agents as unsaved again.
func (f *agentTable) returnBeats(beats []domain.AgentBeat) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, b := range beats {
		if m := f.byID[b.ID]; m != nil {
			m.unsaved = true
		}
	}
}
