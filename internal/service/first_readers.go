package service

import (
	"context"
	"sync"
	"time"
)

// yieldLimit is how long background work waits for readers at a time. It must be less than what a feed's slot may be held for.
const yieldLimit = 100 * time.Millisecond

// firstReaders counts the readers that wait for a project of which nothing is known yet, as after a start. The zero value is ready
// for use.
type firstReaders struct {
	mu      sync.Mutex
	readers int
	none    chan struct{} // closed when there are no such readers any more; nil while there are none
}

func (f *firstReaders) begin() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.readers++; f.readers == 1 {
		f.none = make(chan struct{})
	}
}

func (f *firstReaders) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.readers--; f.readers == 0 {
		close(f.none)
		f.none = nil
	}
}

// yield returns when there are no such readers, at the latest after yieldLimit or when ctx ends.
func (f *firstReaders) yield(ctx context.Context) {
	f.mu.Lock()
	none := f.none
	f.mu.Unlock()
	if none == nil {
		return
	}
	limit := time.NewTimer(yieldLimit)
	defer limit.Stop()
	select {
	case <-none:
	case <-limit.C:
	case <-ctx.Done():
	}
}

// Yield gives priority to readers that wait for a pipeline of which nothing is known yet: after a start, fetching all projects
// takes all processors. It returns when no such reader waits, at the latest after yieldLimit.
func (s *Pipelines) Yield(ctx context.Context) { s.firstReaders.yield(ctx) }
