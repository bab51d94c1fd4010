package console

import (
	"crypto/rand"
	"slices"
	"sync"

	"switchyard/internal/service"
)

// removals are the last removals made on the console, which can still be undone. They stay in memory, since they hold
// tokens.
type removals struct {
	mu   sync.Mutex
	last []keptRemoval
}

type keptRemoval struct {
	id string
	service.Removal
}

// maxRemovals bounds how many removals can be undone.
const maxRemovals = 32

// keep returns the id under which the removal can be undone.
func (l *removals) keep(r service.Removal) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.last) == maxRemovals {
		l.last = slices.Delete(l.last, 0, 1)
	}
	id := rand.Text()
	l.last = append(l.last, keptRemoval{id, r})
	return id
}

// take returns the removal with this id, once.
func (l *removals) take(id string) (service.Removal, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.IndexFunc(l.last, func(kept keptRemoval) bool { return kept.id == id })
	if i < 0 {
		return service.Removal{}, false
	}
	kept := l.last[i]
	l.last = slices.Delete(l.last, i, i+1)
	return kept.Removal, true
}
