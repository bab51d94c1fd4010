package store

import (
	"context"
	"database/sql"
	"sync"

	"switchyard/internal/domain"
)

// group gathers small transactions that wait at the same time into one, since what they wait for is the disk:
// a thousand callers then cost a few flushes instead of a thousand.
type group struct {
	committing sync.Mutex // held by the caller that commits for everybody waiting
	mu         sync.Mutex // guards waiting
	waiting    []*groupCall
}

type groupCall struct {
	fn   func(*sql.Tx) error
	done bool // guarded by committing
	err  error
}

// grouped runs fn in a transaction that it may share with other grouped calls. fn may be run twice: where one of
// them fails, all are undone and run again, each on its own. It returns once fn's work is stored or undone.
func (db *DB) grouped(fn func(*sql.Tx) error) error {
	call := &groupCall{fn: fn, err: domain.Errorf(domain.Internal, "the store failed")} // stands if a batch panics
	g := &db.group
	g.mu.Lock()
	g.waiting = append(g.waiting, call)
	g.mu.Unlock()

	g.committing.Lock()
	defer g.committing.Unlock()
	if !call.done {
		g.mu.Lock()
		batch := g.waiting
		g.waiting = nil
		g.mu.Unlock()
		db.commit(batch)
	}
	return call.err
}

// commit runs a batch of calls. It knows no context: no caller's end may undo the work of the others.
func (db *DB) commit(batch []*groupCall) {
	for _, call := range batch {
		call.done = true
	}
	ctx := context.Background()
	err := db.tx(ctx, func(tx *sql.Tx) error {
		for _, call := range batch {
			if err := call.fn(tx); err != nil {
				return err
			}
		}
		return nil
	})
	for _, call := range batch {
		call.err = err
		if err != nil && len(batch) > 1 {
			call.err = db.tx(ctx, call.fn)
		}
	}
}
