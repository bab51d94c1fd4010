package service

import (
	"time"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
)

type agentEntry struct {
	record  domain.AgentRecord
	seen    time.Time     // when it joined, or its last heartbeat began or ended
	open    int           // the number of open heartbeats
	began   time.Time     // when the last one arrived
	held    chan struct{} // closed, and replaced, when another heartbeat is held
	unsaved bool          // heartbeats have changed it since it was saved
	news    bool          // they have changed its state or detail
	// ours is whether this gateway stored its last heartbeat, that is, the agent calls here. storedSeen is its stored LastSeen, in
	// Unix milliseconds, and savedAt when this gateway last stored it.
	ours       bool
	storedSeen int64
	savedAt    time.Time
	sentTo     assignment    // the assignment in the last response to a heartbeat
	changed    chan struct{} // closed, and replaced, when its assignment changes; closed when it is removed
	removed    bool
	failing    time.Time // since when its command has been failing, zero while it is healthy
}

// recoveredAfter is how long a command must run after a failure to count as healthy again.
const recoveredAfter = time.Minute

// failingSince returns when the agent's command began to fail, zero while it is healthy.
func (e *agentEntry) failingSince() time.Time {
	if e.record.State == domain.AgentRunning && clock.Now().Sub(e.record.StateSince) >= recoveredAfter {
		return time.Time{}
	}
	return e.failing
}

// setState sets the agent's state, which began at since.
func (e *agentEntry) setState(state domain.AgentState, since time.Time) {
	if state != e.record.State {
		e.failing = e.failingIn(state, since)
	}
	e.record.State, e.record.StateSince = state, since
}

// failingIn returns the value of failing for a state that began at began.
func (e *agentEntry) failingIn(state domain.AgentState, began time.Time) time.Time {
	since := e.failingSince()
	switch {
	case state == domain.AgentIdle || state == domain.AgentStopped:
		return time.Time{}
	case state == domain.AgentFailed && since.IsZero():
		return began
	}
	return since
}

// assignment is the project that an agent is assigned to, zero for none.
type assignment struct{ project, url string }

func assignmentOf(a domain.Agent) assignment {
	return assignment{a.Project, a.ProjectURL}
}

func (e *agentEntry) touch(now time.Time) {
	e.seen, e.record.LastSeen, e.unsaved = now, clock.Of(now), true
}

func (t *agentTable) view(e *agentEntry, registry *domain.Registry) domain.Agent {
	t.mu.Lock()
	defer t.mu.Unlock()
	return e.view(registry)
}

// view returns the agent for callers. An assignment to a project that is just being removed shows as none.
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
