package keyed

import "sync"

// Waiters are those who wait for the next change of something with a key. The zero value has none.
type Waiters struct {
	mu      sync.Mutex
	waiting map[string]chan struct{}
}

// Changed returns a channel that is closed at the next change. Call it before reading what changes.
func (w *Waiters) Changed(key string) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.waiting == nil {
		w.waiting = map[string]chan struct{}{}
	}
	if w.waiting[key] == nil {
		w.waiting[key] = make(chan struct{})
	}
	return w.waiting[key]
}

// Wake wakes those who wait for one of the keys.
func (w *Waiters) Wake(keys ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, key := range keys {
		if waiting := w.waiting[key]; waiting != nil {
			close(waiting)
			delete(w.waiting, key)
		}
	}
}

// WakeAll wakes all.
func (w *Waiters) WakeAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, waiting := range w.waiting {
		close(waiting)
	}
	clear(w.waiting)
}
