// Package keyed keeps state for each of many callers, projects or topics: how much is done for it at once, and who
// waits for it to change.
package keyed

import (
	"context"
	"sync"
)

// Semaphore has a number of slots for each key. A key that nobody uses takes no memory.
type Semaphore struct {
	slots int

	mu   sync.Mutex
	keys map[string]*users
}

type users struct {
	slots chan struct{} // has a value for each slot in use
	count int           // of those who have a slot or wait for one
}

func NewSemaphore(slots int) *Semaphore {
	return &Semaphore{slots: slots, keys: map[string]*users{}}
}

// Acquire waits for one of the key's slots, and returns the error of ctx when that ends first. release may be called
// more than once.
func (s *Semaphore) Acquire(ctx context.Context, key string) (release func(), err error) {
	s.mu.Lock()
	u := s.keys[key]
	if u == nil {
		u = &users{slots: make(chan struct{}, s.slots)}
		s.keys[key] = u
	}
	u.count++
	s.mu.Unlock()
	leave := func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if u.count--; u.count == 0 {
			delete(s.keys, key)
		}
	}
	select {
	case u.slots <- struct{}{}:
		return sync.OnceFunc(func() { <-u.slots; leave() }), nil
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
}
