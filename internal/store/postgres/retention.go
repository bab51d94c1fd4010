package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// RemoveEvents removes events, and texts that no other event has. It keeps the events' digests, so that they are not stored again,
// and the stories' newest names.
func (db *DB) RemoveEvents(ctx context.Context, token int64, ids []int64) error {
	if len(ids) == 0 {
		return nil
	}
	return db.write(ctx, token, func(tx pgx.Tx) error {
		var batch pgx.Batch
		batch.Queue(lockStream)
		// All parts of the statement see the database as it was before.
		batch.Queue(`WITH gone AS (DELETE FROM events WHERE id = ANY ($1) RETURNING text_id)
			DELETE FROM event_texts WHERE id IN (SELECT text_id FROM gone)
			AND NOT EXISTS (SELECT FROM events WHERE text_id = event_texts.id AND id <> ALL ($1))
			AND NOT EXISTS (SELECT FROM stays WHERE text_id = event_texts.id)
			AND NOT EXISTS (SELECT FROM stories WHERE stories.project_id = event_texts.project_id
				AND stories.story_id = event_texts.story_id AND stories.text_id = event_texts.id)`, ids)
		return tx.SendBatch(ctx, &batch).Close()
	})
}

// LastEventID returns the greatest id ever assigned, 0 before the first.
func (db *DB) LastEventID(ctx context.Context) (id int64, err error) {
	err = db.tables.QueryRowContext(ctx, "SELECT last_id FROM stream").Scan(&id)
	return id, db.Translate(err)
}

// Size returns the size of the database on disk, in bytes. free is always 0, since it is unknown.
func (db *DB) Size(ctx context.Context) (size, free int64, err error) {
	err = db.tables.QueryRowContext(ctx, "SELECT pg_database_size(current_database())").Scan(&size)
	return size, 0, db.Translate(err)
}
