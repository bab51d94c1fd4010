package store

import (
	"context"
	"errors"
	"sync"
	"time"

	"switchyard/internal/domain"
)

// ErrNoSpace is the cause of a write that failed because the database's disk is full. Smaller ones may succeed all the same, and
// prove nothing.
var ErrNoSpace = errors.New("no space is left")

// failureMemory is how long a failed write counts when no other write follows it.
const failureMemory = time.Minute

// health records whether writes succeed.
type health struct {
	mu    sync.Mutex
	err   error     // of the last write, nil for a good one
	at    time.Time // when that was
	since time.Time // when the first of those that failed in a row did
}

// note records how a write ended; err is already translated. A refusal, such as a conflict, or a caller who left, does not count.
func (h *health) note(err error) {
	if code := domain.CodeOf(err); err != nil && (code != domain.Internal && code != domain.Unavailable || errors.Is(err, context.Canceled) || errors.Is(err, domain.ErrDutyLost)) {
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

// WriteFailure returns why the last write failed, unless that was more than a minute ago, and since when writes have been
// failing; nil when the last one was good.
func (db *Tables) WriteFailure() (since time.Time, err error) {
	h := &db.health
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err == nil || time.Since(h.at) > failureMemory {
		return time.Time{}, nil
	}
	return h.since, h.err
}

// TryWrite writes something, so that it becomes known whether writing works again.
func (db *Tables) TryWrite(ctx context.Context) error {
	return db.SetState(ctx, "last_try", time.Now().UTC().Format(time.RFC3339))
}

// HasSpace notes that the disk has space again.
func (db *Tables) HasSpace() {
	h := &db.health
	h.mu.Lock()
	defer h.mu.Unlock()
	if errors.Is(h.err, ErrNoSpace) {
		h.err = nil
	}
}
