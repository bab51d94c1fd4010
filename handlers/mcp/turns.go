package mcp

import (
	"context"
	"sync"
	"time"
)

const (
	// maxTurns is how many requests of one caller are worked on at a time; the others wait in line, so that a thousand
	// batches of one caller do not keep everybody else from the processors.
	maxTurns = 8
	// turnTime is after how long a request that goes on, or waits for something, lets the next one begin.
	turnTime = 100 * time.Millisecond
)

// turns are the lines in which the requests of each caller wait. The zero value is ready for use.
type turns struct {
	mu    sync.Mutex
	lines map[string]*line
}

type line struct {
	slots chan struct{}
	users int // requests that wait or are worked on
}

// wait waits for the caller's turn. It returns the error of ctx when that ends first.
func (t *turns) wait(ctx context.Context, caller string) (end func(), err error) {
	t.mu.Lock()
	l := t.lines[caller]
	if l == nil {
		if t.lines == nil {
			t.lines = map[string]*line{}
		}
		l = &line{slots: make(chan struct{}, maxTurns)}
		t.lines[caller] = l
	}
	l.users++
	t.mu.Unlock()
	leave := func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if l.users--; l.users == 0 {
			delete(t.lines, caller)
		}
	}
	select {
	case l.slots <- struct{}{}:
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
	pass := sync.OnceFunc(func() {
		<-l.slots
		leave()
	})
	timer := time.AfterFunc(turnTime, pass)
	return func() {
		timer.Stop()
		pass()
	}, nil
}
