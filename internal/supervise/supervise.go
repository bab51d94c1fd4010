// Package supervise keeps named background loops running: a loop that fails or panics is logged and restarted after a
// pause. It knows nothing about what the loops do.
package supervise

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"sync"
	"time"
)

// Pauses before a failed loop is restarted. After a run longer than maxPause they start with firstPause again.
const (
	firstPause = 100 * time.Millisecond
	maxPause   = 30 * time.Second
)

// Go calls work in a new goroutine. A panic ends work, not the process, and is logged; what must be released or
// answered then is deferred by work, or called by it through Call.
func Go(log *slog.Logger, name string, work func()) {
	go func() {
		if err := Call(func() error { work(); return nil }); err != nil {
			log.Error("panic", "in", name, "error", err, "stack", err.(*panicError).stack)
		}
	}()
}

// Call calls work and turns a panic into an error, for which IsPanic is true.
func Call(work func() error) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = &panicError{cause, string(debug.Stack())}
		}
	}()
	return work()
}

// Group runs loops until its context ends.
type Group struct {
	ctx  context.Context // the lifetime of every loop
	log  *slog.Logger
	done sync.WaitGroup
}

// New returns a group without loops. Its loops end with ctx.
func New(ctx context.Context, log *slog.Logger) *Group {
	return &Group{ctx: ctx, log: log}
}

// Go calls Run with loop in a new goroutine.
func (g *Group) Go(name string, loop func(context.Context) error) {
	g.done.Go(func() { Run(g.ctx, g.log, name, loop) })
}

// Wait returns when every loop has ended.
func (g *Group) Wait() { g.done.Wait() }

// Run calls loop until it returns nil or ctx ends. A failure or panic is logged, and loop is called again after a
// pause.
func Run(ctx context.Context, log *slog.Logger, name string, loop func(context.Context) error) {
	backoff := Backoff{First: firstPause, Max: maxPause}
	for ctx.Err() == nil {
		began := time.Now()
		err := Call(func() error { return loop(ctx) })
		if err == nil || ctx.Err() != nil && !IsPanic(err) {
			return
		}
		if time.Since(began) > maxPause {
			backoff.Reset()
		}
		pause := backoff.Next()
		attributes := []any{"loop", name, "error", err, "again_in", pause}
		if p, ok := err.(*panicError); ok {
			attributes = append(attributes, "stack", p.stack)
		}
		log.ErrorContext(ctx, "loop failed", attributes...)
		Sleep(ctx, pause)
	}
}

type panicError struct {
	cause any
	stack string
}

func (p *panicError) Error() string { return fmt.Sprintf("panic: %v", p.cause) }

func IsPanic(err error) bool { _, ok := err.(*panicError); return ok }

// UnlessEnded returns err, or nil if ctx has ended: what fails because it was stopped has not failed.
func UnlessEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// Backoff computes the pauses between attempts: they double from First up to Max, and each is shortened by a random
// amount of up to half, so that callers that failed together do not retry together.
type Backoff struct {
	First, Max time.Duration
	pause      time.Duration // the last one, before it was shortened
}

// Next returns the next pause, which is positive and at most Max.
func (b *Backoff) Next() time.Duration {
	b.pause = min(max(2*b.pause, b.First), b.Max)
	return b.pause - rand.N(b.pause/2+1)
}

// Reset starts again from First, after a success.
func (b *Backoff) Reset() { b.pause = 0 }

// Sleep waits for d. It returns false if ctx ends first.
func Sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Await waits until changed has something to receive or is closed, but for at most d, or until ctx ends.
func Await(ctx context.Context, changed <-chan struct{}, d time.Duration) {
	select {
	case <-changed:
	case <-time.After(d):
	case <-ctx.Done():
	}
}
