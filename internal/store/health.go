package store

import (
	"context"
	"errors"
	"sync"
	"time"

	"switchyard/internal/domain"
)

// ErrNoSpace is the cause of a write that failed because the database's disk is full. That smaller writes succeed does
// not mean that there is space again.
var ErrNoSpace = errors.New("no space is left")

// failureMemory is how long a failed write counts when no other write follows it.
const failureMemory = time.Minute

type health struct {
	mu    sync.Mutex
	err   error     // of the last write, nil if it succeeded
	at    time.Time // when that was
	since time.Time // the first of the consecutive failures
}

// record records the result of a write; err has been translated. Refusals, such as a conflict, and cancellations do not
// count.
func (h *health) record(err error) {
	code := domain.CodeOf(err)
	refused := code != domain.Internal && code != domain.Unavailable || errors.Is(err, domain.ErrNotLeader)
	if err != nil && (refused || errors.Is(err, context.Canceled)) {
		return
	}
	now := time.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	if err == nil && errors.Is(h.err, ErrNoSpace) && now.Sub(h.at) < failureMemory {
		return
	}
	if err != nil && h.err == nil {
		h.since = now
	}
	h.err, h.at = err, now
}

func (h *health) failure() (since time.Time, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err == nil || time.Since(h.at) > failureMemory {
		return time.Time{}, nil
	}
	return h.since, h.err
}

// WriteFailure returns why the last write failed and since when writes have been failing, nil if the last one succeeded
// or was more than a minute ago. Appending events counts separately: other writes may succeed where it fails.
func (db *conn) WriteFailure() (since time.Time, err error) {
	if since, err := db.appends.failure(); err != nil {
		return since, err
	}
	return db.health.failure()
}

// Appended records the result of appending events, and returns the translated error.
func (db *conn) Appended(err error) error {
	err = db.Translate(err)
	db.appends.record(err)
	return err
}

func (db *conn) HasSpace() {
	for _, h := range []*health{&db.health, &db.appends} {
		h.mu.Lock()
		if errors.Is(h.err, ErrNoSpace) {
			h.err = nil
		}
		h.mu.Unlock()
	}
}
