package service

import (
	"log/slog"
	"sync"
	"time"

	"switchyard/internal/supervise"
)

// background runs a piece of work, at most once at a time, for all its callers.
type background struct {
	log  *slog.Logger
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
		supervise.Go(b.log, "background", func() { b.run(work) })
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
	err := supervise.Call(work) // callers report it
	b.mu.Lock()
	defer b.mu.Unlock()
	b.err = err
	close(b.done)
	b.done = nil
}
