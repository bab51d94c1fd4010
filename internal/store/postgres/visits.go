package postgres

import (
	"context"
	"database/sql"

	"switchyard/internal/domain"
	"switchyard/internal/store"
)

const visitsSince = "SELECT " + store.VisitColumns +
	" FROM stage_visits JOIN stories ON stories.id = story WHERE changed >= $1 ORDER BY story, number"

// VisitsSince returns the visits that have changed since a position, none for 0, and the next position. That is before
// any transaction in progress, so some may be returned again.
func (db *DB) VisitsSince(ctx context.Context, position int64) (changed []domain.Visit, next int64, err error) {
	err = db.Snapshot(ctx, func(ctx context.Context, tx *sql.Tx) error {
		err := tx.QueryRowContext(ctx, "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint").Scan(&next)
		if err != nil || position == 0 {
			return err
		}
		changed, err = store.AllRows(ctx, tx, store.ScanVisit, visitsSince, position)
		return err
	})
	return changed, next, db.Translate(err)
}
