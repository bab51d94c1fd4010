package service

import (
	"slices"
	"time"

	"switchyard/internal/domain"
)

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
