package postgres

import (
	"context"
	"database/sql"

	"github.com/jackc/pgx/v5"

	"switchyard/internal/domain"
	"switchyard/internal/store"
)

var visitSQL = store.NewVisitSQL("json_array_elements($1::json) AS each")

// saveVisits also marks the rows as changed by this transaction.
var saveVisits = visitSQL.Save + ", changed = DEFAULT"

// ObserveVisits applies observations of projects to the visits of their stories, in one transaction. It returns the
// changed ones, and the projects of which newer events contradict a sighting.
func (db *DB) ObserveVisits(ctx context.Context, token int64, o ...domain.Observation) (
	changed []domain.Visit, contradicted []string, err error,
) {
	err = db.write(ctx, token, func(tx pgx.Tx) error {
		var batch pgx.Batch
		batch.Queue(lockStream)
		keys, named := store.Seen(o)
		read := readVisits(&batch, keys)
		if err := tx.SendBatch(ctx, &batch).Close(); err != nil {
			return err
		}
		book := read.book()
		contradicted = book.Observe(o)
		batch = pgx.Batch{}
		if changed = writeVisits(&batch, book); len(changed) > 0 {
			queueNames(&batch, named)
		}
		return tx.SendBatch(ctx, &batch).Close()
	})
	return changed, contradicted, err
}

// visitRead holds the newest visits of stories and the counts of their projects, once its batch has been sent.
type visitRead struct {
	newest []domain.Visit
	counts []domain.VisitCounts
}

// readVisits queues the reading of the newest visits of stories.
func readVisits(batch *pgx.Batch, keys []domain.StoryKey) *visitRead {
	read := &visitRead{}
	if len(keys) == 0 {
		return read
	}
	stories, projects := store.VisitKeys(keys)
	batch.Queue(visitSQL.Newest, stories).Query(func(rows pgx.Rows) (err error) {
		read.newest, err = pgx.CollectRows(rows, scanned(store.ScanVisit))
		return err
	})
	batch.Queue(visitSQL.Counts, projects).Query(func(rows pgx.Rows) (err error) {
		read.counts, err = pgx.CollectRows(rows, scanned(store.ScanVisitCounts))
		return err
	})
	return read
}

func scanned[T any](scan func(store.Row) (T, error)) pgx.RowToFunc[T] {
	return func(row pgx.CollectableRow) (T, error) { return scan(row) }
}

func (r *visitRead) book() *domain.VisitBook { return domain.NewVisitBook(r.newest, r.counts) }

// writeVisits queues the storing of a book's changes, and returns them.
func writeVisits(batch *pgx.Batch, book *domain.VisitBook) (changed []domain.Visit) {
	changed, visits, counts := store.VisitRows(book)
	if visits != "" {
		batch.Queue(saveVisits, visits)
		batch.Queue(notifyStatement, channel, domain.TopicVisits)
	}
	if counts != "" {
		batch.Queue(visitSQL.SaveCounts, counts)
	}
	return changed
}

const visitsSince = "SELECT " + store.VisitColumns +
	" FROM stage_visits WHERE changed >= $1 ORDER BY project, story_id, number"

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
