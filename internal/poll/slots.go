package poll

import (
	"context"
	"sync"
	"time"
)

const (
	// readSlots is how many feeds are read from their beginning at a time: each may return a whole buffer, and a gateway
	// that starts reads all of them.
	readSlots = 32
	// slotLimit is the time after which a server that has not answered loses its slot, so that slow ones do not hold up
	// others.
	slotLimit = 250 * time.Millisecond
)

// slots is a semaphore: it holds a value for each slot that is taken.
type slots chan struct{}

// slot is the right to read a feed and to hold its records until they are stored.
type slot struct {
	release func() // may be called again
	limit   *time.Timer
}

// acquire waits for a slot. It returns ctx's error when that ends first.
func (s slots) acquire(ctx context.Context) (slot, error) {
	select {
	case s <- struct{}{}:
		release := sync.OnceFunc(func() { <-s })
		return slot{release, time.AfterFunc(slotLimit, release)}, nil
	case <-ctx.Done():
		return slot{}, ctx.Err()
	}
}

// answered keeps the slot until release, unless the answer came too late for that.
func (s slot) answered() { s.limit.Stop() }
