package postgres

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	// slowFailure is how long a failed call must have taken for the breaker to open. Fast failures delay nobody.
	slowFailure = time.Second
	// breakerPause is how often an open breaker lets a call through.
	breakerPause = 500 * time.Millisecond
)

// breaker makes calls fail at once while the database does not respond, except for an occasional one that checks
// whether it responds again. Otherwise each page and each heartbeat would wait for seconds.
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

// deadlines limits statements and batches whose contexts have no deadline to callLimit. It works as pgx's tracer, which
// all statements pass through, including those of package sql.
type deadlines struct {
	seen func(statement string, args []any) // unless nil, called with each statement
}

type cancelKey struct{}

func (d deadlines) begin(ctx context.Context) context.Context {
	if _, limited := ctx.Deadline(); limited {
		return ctx
	}
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	return context.WithValue(ctx, cancelKey{}, cancel)
}

func (d deadlines) end(ctx context.Context) {
	if cancel, ours := ctx.Value(cancelKey{}).(context.CancelFunc); ours {
		cancel()
	}
}

func (d deadlines) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	if d.seen != nil {
		d.seen(data.SQL, data.Args)
	}
	return d.begin(ctx)
}

func (d deadlines) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryEndData) {
	d.end(ctx)
}

func (d deadlines) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return d.begin(ctx)
}

func (d deadlines) TraceBatchQuery(_ context.Context, _ *pgx.Conn, data pgx.TraceBatchQueryData) {
	if d.seen != nil {
		d.seen(data.SQL, data.Args)
	}
}

func (d deadlines) TraceBatchEnd(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchEndData) {
	d.end(ctx)
}

// slowAppend is the duration from which an append counts as slow.
const slowAppend = 2 * time.Second

// paceMemory is how long slow appends count when no other append follows them.
const paceMemory = 10 * time.Second

// pace records how long appends have been slow.
type pace struct {
	mu    sync.Mutex
	began time.Time // of the current append, zero for none
	since time.Time // when the first of the consecutive slow ones began
	until time.Time // when the last of them ended
}

func (p *pace) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.began = time.Now()
}

// end records the result of an append. A refusal by the server does not make it slow: other gateways would be refused
// as well.
func (p *pace) end(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	began := p.began
	p.began = time.Time{}
	var refused *pgconn.PgError
	switch {
	case errors.As(err, &refused), err == nil && time.Since(began) < slowAppend:
		p.since = time.Time{}
	case time.Since(began) >= slowAppend:
		if p.since.IsZero() {
			p.since = began
		}
		p.until = time.Now()
	}
}

// SlowAppends returns how long every append has been slow, 0 if the last one was not.
func (p *pace) SlowAppends() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	since, until := p.since, p.until
	if !p.began.IsZero() && time.Since(p.began) >= slowAppend {
		if until = time.Now(); since.IsZero() {
			since = p.began
		}
	}
	if since.IsZero() || time.Since(until) > paceMemory {
		return 0
	}
	return until.Sub(since)
}
