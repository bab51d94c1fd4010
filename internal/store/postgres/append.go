package postgres

import (
	"context"
	"database/sql"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"switchyard/internal/domain"
	"switchyard/internal/store"
)

// AppendEvents stores reads; see store.Tables.
func (db *DB) AppendEvents(ctx context.Context, reads []domain.FeedRead) (domain.AppendResult, error) {
	db.pace.begin()
	appended, err := db.Tables.AppendEvents(ctx, reads)
	db.pace.end(err)
	return appended, err
}

// transact is Transact of store.Engine. It takes two round trips, whatever it stores: one locks and reads, the other
// writes, notifies other gateways and commits.
func (db *DB) transact(
	ctx context.Context, read []store.Statement, write func() ([]store.Statement, []domain.Topic, error),
) error {
	ctx, cancel := context.WithTimeout(ctx, writeLimit)
	defer cancel()
	// AcquireFunc drops a connection that is still in the transaction.
	err := db.leader.AcquireFunc(ctx, func(c *pgxpool.Conn) error {
		if err := send(ctx, c, append([]store.Statement{{SQL: "BEGIN"}}, read...)); err != nil {
			return err
		}
		statements, about, err := write()
		if err != nil {
			return err
		}
		for _, topic := range about {
			statements = append(statements, store.Statement{SQL: notifyStatement, Args: []any{channel, topic}})
		}
		return send(ctx, c, append(statements, store.Statement{SQL: "COMMIT"}))
	})
	db.unblock(ctx, err)
	return err
}

func send(ctx context.Context, c *pgxpool.Conn, statements []store.Statement) error {
	var batch pgx.Batch
	for _, s := range statements {
		queued := batch.Queue(s.SQL, s.Args...)
		if s.Each == nil {
			continue
		}
		queued.Query(func(rows pgx.Rows) error {
			for rows.Next() {
				if err := s.Each(rows); err != nil {
					return err
				}
			}
			return rows.Err()
		})
	}
	return c.SendBatch(ctx, &batch).Close()
}

// stalled ends the connections of gateways that were frozen, cut off or slow while sending the statements of a
// transaction. They keep their locks, and no time limit of the server applies while it waits for the rest. A role may
// end its own connections.
const stalled = `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
	WHERE datname = current_database() AND usename = current_user
		AND application_name = current_setting('application_name') AND pid <> pg_backend_pid()
		AND wait_event = 'ClientRead' AND xact_start < pg_catalog.clock_timestamp() - INTERVAL '1.5 seconds'`

// unblock ends such connections if err means that waiting for a lock took too long.
func (db *DB) unblock(ctx context.Context, err error) {
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok && refused.Code == lockTimeout {
		_, _ = db.pool.Exec(ctx, stalled) // the caller already has an error, and retries
	}
}

const lockTimeout = "55P03" // lock_not_available

const visitsSince = "SELECT " + store.VisitColumns +
	" FROM stage_visits WHERE changed >= $1 ORDER BY story, number"

// VisitsSince returns the visits that have changed since a position, none for 0, the projects whose visits may have
// been removed by then, and the next position. That is before any transaction in progress, so some may be returned
// again.
func (db *DB) VisitsSince(
	ctx context.Context, position int64,
) (changed []domain.Visit, replaced []string, next int64, err error) {
	err = db.Snapshot(ctx, func(ctx context.Context, tx *sql.Tx) error {
		err := tx.QueryRowContext(ctx, "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint").Scan(&next)
		if err != nil || position == 0 {
			return err
		}
		if changed, err = store.AllRows(ctx, tx, store.ScanVisit, visitsSince, position); err != nil {
			return err
		}
		const since = "SELECT project FROM histories WHERE changed >= $1"
		replaced, err = store.AllRows(ctx, tx, store.ScanOne[string], since, position)
		return err
	})
	return changed, replaced, next, db.Translate(err)
}
