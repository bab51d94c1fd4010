package postgres

import (
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// slowAppend is the duration from which an append is slow.
const slowAppend = 2 * time.Second

// paceMemory is how long slow appends count when no other append follows them.
const paceMemory = 10 * time.Second

// pace records for how long appends have been slow.
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

// end records the result of an append. That the server refuses it does not make it slow: it would refuse other gateways
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

// SlowAppends returns for how long every append has been slow, 0 if the last one was not.
func (db *DB) SlowAppends() time.Duration {
	p := &db.pace
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
