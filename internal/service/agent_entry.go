package service

import (
	"strings"
	"sync"
	"time"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
)

// agentEntry is an agent in memory. mu guards everything but the record's id, secret and time of joining, which never
// change.
type agentEntry struct {
	mu      sync.Mutex
	timeout time.Duration

	record  domain.AgentRecord
	seen    time.Time     // when it joined, or its last heartbeat began or ended
	open    int           // the number of open heartbeats
	began   time.Time     // when the last one arrived
	held    chan struct{} // closed, and replaced, when another heartbeat is held
	unsaved bool          // heartbeats have changed it since it was saved
	news    bool          // they have changed its state or detail
	// ours is whether this gateway stored its last heartbeat, that is, the agent calls here. storedSeen is its stored
	// LastSeen, in Unix milliseconds, and savedAt when this gateway last stored it.
	ours       bool
	storedSeen int64
	savedAt    time.Time
	sentTo     assignment    // the assignment in the last response to a heartbeat
	changed    chan struct{} // closed, and replaced, when its assignment changes; closed when it is removed
	removed    bool
	failing    time.Time // since when its command has been failing, zero while it is healthy
}

const (
	// recoveredAfter is how long a command must run after a failure before it counts as healthy.
	recoveredAfter = time.Minute
	// quietAfter is how long an agent may have no open heartbeat before its last one is stored for other gateways.
	quietAfter = time.Second
)

func newAgentEntry(r domain.AgentRecord, seen time.Time, timeout time.Duration) *agentEntry {
	e := &agentEntry{
		timeout: timeout, record: r, seen: seen, storedSeen: r.LastSeen.UnixMilli(), changed: make(chan struct{}),
	}
	if r.State == domain.AgentFailed {
		e.failing = r.StateSince
	}
	return e
}

// begin records a heartbeat, which is open until end is called. shared is whether other gateways may have stored a
// newer state. known is the assignment that an agent reporting b.Assigned knows; its url is "" if no heartbeat of it
// has been answered yet. A heartbeat that waits ends the one that is being held; the next one closes superseded.
func (e *agentEntry) begin(b Heartbeat, shared bool) (known assignment, superseded <-chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.open++
	e.began = time.Now()
	e.touch(e.began)
	e.news = e.news || shared && !e.ours && (b.State != nil || b.Detail != nil)
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
		e.record.Detail = strings.Clone(*b.Detail) // a copy, not a part of the whole body
		e.news = true
	}
	if b.Wait > 0 {
		e.supersede()
		e.held = make(chan struct{})
		superseded = e.held
	}
	if e.sentTo.project == b.Assigned {
		return e.sentTo, superseded
	}
	return assignment{project: b.Assigned}, superseded
}

func (e *agentEntry) end() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.open--
	if e.seen = time.Now(); e.ours || e.unsaved { // otherwise it has called another gateway since
		e.touch(e.seen)
	}
}

// supersede ends the heartbeat that is being held. The caller holds mu.
func (e *agentEntry) supersede() {
	if e.held != nil {
		close(e.held)
		e.held = nil
	}
}

// send records the assignment in a response, and reports whether the heartbeat said something that other gateways need
// to know.
func (e *agentEntry) send(a assignment) (news bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.sentTo = a
	return e.news
}

// view returns the agent's current state and a channel that is closed when its assignment changes; ok is false if the
// agent has been removed.
func (e *agentEntry) view(registry *domain.Registry) (a domain.Agent, changed <-chan struct{}, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.agent(registry), e.changed, !e.removed
}

func (e *agentEntry) project() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.record.Project
}

func (e *agentEntry) with(do func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	do()
}

func (e *agentEntry) remove() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.removed = true
	close(e.changed)
}

// assign sets the project, "" for none. The caller holds mu.
func (e *agentEntry) assign(project string) {
	e.record.Project = project
	close(e.changed)
	e.changed = make(chan struct{})
}

// failingSince returns when the agent's command began to fail, zero while it is healthy. The caller holds mu.
func (e *agentEntry) failingSince() time.Time {
	if e.record.State == domain.AgentRunning && clock.Now().Sub(e.record.StateSince) >= recoveredAfter {
		return time.Time{}
	}
	return e.failing
}

// setState sets the agent's state, which began at since. The caller holds mu.
func (e *agentEntry) setState(state domain.AgentState, since time.Time) {
	if state != e.record.State {
		failing := e.failingSince()
		switch {
		case state == domain.AgentIdle || state == domain.AgentStopped:
			failing = time.Time{}
		case state == domain.AgentFailed && failing.IsZero():
			failing = since
		}
		e.failing = failing
	}
	e.record.State, e.record.StateSince = state, since
}

func (e *agentEntry) touch(now time.Time) {
	e.seen, e.record.LastSeen, e.unsaved = now, clock.Of(now), true
}

// agent returns the agent for callers. An assignment to a project that is being removed shows as none. The caller holds
// mu.
func (e *agentEntry) agent(registry *domain.Registry) domain.Agent {
	a := e.record.Agent
	p, _ := registry.Find(a.Project)
	a.Project, a.ProjectURL = p.Name, p.URL
	return a
}

// registered returns the agent with what people see of it.
func (e *agentEntry) registered(registry *domain.Registry) domain.RegisteredAgent {
	e.mu.Lock()
	defer e.mu.Unlock()
	known := domain.RegisteredAgent{
		Agent: e.agent(registry), Presence: domain.AgentLost, Connected: e.open > 0, FailingSince: e.failingSince(),
	}
	switch {
	case e.record.State == domain.AgentStopped:
		known.Presence = domain.AgentLeft
	case e.open > 0 || time.Since(e.seen) <= e.timeout:
		known.Presence = domain.AgentAlive
	}
	return known
}

func (e *agentEntry) apply(r domain.AgentRecord, seen time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
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
	e.supersede() // it calls another gateway by now
}

// takeBeat returns what heartbeats have changed, and whether that must be stored now.
func (e *agentEntry) takeBeat(now time.Time, all bool) (beat domain.AgentBeat, due bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.unsaved || !all && !e.isDue(now) {
		return beat, false
	}
	beat = domain.AgentBeat{Agent: e.record.Agent, OnlySeen: !e.news}
	e.unsaved, e.news = false, false
	return beat, true
}

// isDue reports whether the agent's heartbeats must be stored now: it has reported something new, has begun or stopped
// calling this gateway, or was last stored too long ago. The caller holds mu.
func (e *agentEntry) isDue(now time.Time) bool {
	return e.news || !e.ours || now.Sub(e.savedAt) >= e.timeout/3 || e.open == 0 && now.Sub(e.seen) >= quietAfter
}

type assignment struct{ project, url string }

type Heartbeat struct {
	State    *domain.AgentState // nil keeps the last one, except that stopped becomes idle
	Detail   *string            // nil keeps the last one; only the last 4096 bytes are kept
	Assigned string             // the project that the agent believes it is assigned to, "" for none
	Wait     time.Duration      // how long the response may be held, 0 for not at all
}
