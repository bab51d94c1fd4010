package postgres

import (
	"context"
	"sync/atomic"

	"switchyard/internal/domain"
)

// seenEvents keeps the greatest event id that this gateway has seen. A standby that takes over from a lost server may
// lack the last events. Their ids must not be assigned again, or clients that have read them would miss other events.
type seenEvents struct{ last atomic.Int64 }

func (s *seenEvents) note(id int64) {
	for {
		last := s.last.Load()
		if id <= last || s.last.CompareAndSwap(last, id) {
			return
		}
	}
}

// Events returns the first q.Limit events that match q; see store.Tables.
func (db *DB) Events(ctx context.Context, q domain.EventQuery) (domain.EventPage, error) {
	page, err := db.Tables.Events(ctx, q)
	if n := len(page.Events); n > 0 {
		db.seen.note(max(page.Events[0].ID, page.Events[n-1].ID))
	}
	return page, err
}
