package service

import (
	"fmt"
	"sync"
	"time"
)

// background runs a piece of work, at most once at a time, for all its callers. The zero value is ready for use.
type background struct {
	mu   sync.Mutex
	done chan struct{} // closed at the end of the work; nil while none is running
	err  error         // of the last run
}

// do starts the work unless it is already running. It returns true when the work has ended, false when that takes longer
// than patience.
func (b *background) do(patience time.Duration, work func() error) (done bool, err error) {
	b.mu.Lock()
	if b.done == nil {
		b.done = make(chan struct{})
		go b.run(work)
	}
	ended := b.done
	b.mu.Unlock()
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case <-ended:
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.err == nil, b.err
	case <-late.C:
		return false, nil
	}
}

func (b *background) run(work func() error) {
	var err error
	defer func() {
		if cause := recover(); cause != nil { // callers report it
			err = fmt.Errorf("panic: %v", cause)
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		b.err = err
		close(b.done)
		b.done = nil
	}()
	err = work()
}
