package service

import (
	"slices"
	"time"
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

// unassign removes, in memory, the assignments to a project that is being removed; the store removes them with the project. It
// returns the agents' ids. The caller holds change.
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

func (t *agentTable) label(e *agentEntry, label string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e.record.Label = label
}

func (t *agentTable) remove(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drop(id)
}

// drop is remove; the caller holds mu.
func (t *agentTable) drop(id string) {
	e := t.byID[id]
	delete(t.byID, id)
	e.removed = true
	close(e.changed)
}

// silent returns the ids of the agents that have not been seen for longer than d.
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
