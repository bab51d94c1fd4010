package service

import (
	"sync/atomic"
	"time"

	"switchyard/internal/clock"
)

// reached records when a shared store was last reached. The zero value means that it can be reached.
type reached struct {
	last  atomic.Int64 // in milliseconds
	since atomic.Int64 // last, while it cannot be reached; else 0
}

// note records the result of an attempt. since is the value of r.since when it began: an attempt that began before a
// failure says nothing about the time after it.
func (r *reached) note(since int64, err error) {
	if err == nil {
		r.last.Store(clock.Now().UnixMilli())
		r.since.CompareAndSwap(since, 0)
	} else {
		r.since.CompareAndSwap(0, max(r.last.Load(), 1))
	}
}

// readyLimit is how long the store may take to respond.
const readyLimit = 2500 * time.Millisecond
