package postgres

import (
	"context"
	"sync"
	"time"
)

const (
	// slowFailure is how long a failed call must have taken for the breaker to open. Fast failures delay nobody.
	slowFailure = time.Second
	// breakerPause is how often an open breaker lets a call through.
	breakerPause = 500 * time.Millisecond
)

// breaker makes calls fail at once while the database does not respond, except for one now and then that checks whether
// it responds again. Otherwise each page and each heartbeat would wait for seconds.
type breaker struct {
	busy func() bool // whether callers wait for each other rather than for the database

	mu     sync.Mutex
	failed error     // why it is open; nil while it is closed
	next   time.Time // when the next call is let through
	trying bool
}

// do calls try unless the breaker is open; then it returns the error that opened it.
func (b *breaker) do(ctx context.Context, try func() error) error {
	b.mu.Lock()
	if b.failed != nil {
		if b.trying || time.Now().Before(b.next) {
			defer b.mu.Unlock()
			return b.failed
		}
		b.trying = true
	}
	b.mu.Unlock()
	began := time.Now()
	err := try()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.trying = false
	switch {
	case err == nil:
		b.failed = nil
	case ctx.Err() != nil: // cancelled: that says nothing about the database
	case b.failed != nil || time.Since(began) > slowFailure && !b.busy():
		b.failed, b.next = err, time.Now().Add(breakerPause)
	}
	return err
}
