package service

import "sync"

// waiters are those who wait for a change: of the stories of a project or of any, or of questions or targets.
type waiters struct {
	mu      sync.Mutex
	waiting map[string]chan struct{} // by project, "" for any, and for what has none
}

// changed returns a channel that is closed at the next change of a project, "" for any. Call it before reading.
func (n *waiters) changed(project string) <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.waiting == nil {
		n.waiting = map[string]chan struct{}{}
	}
	if n.waiting[project] == nil {
		n.waiting[project] = make(chan struct{})
	}
	return n.waiting[project]
}

func (n *waiters) wake(project string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, key := range []string{project, ""} {
		if waiting := n.waiting[key]; waiting != nil {
			close(waiting)
			delete(n.waiting, key)
		}
	}
}
