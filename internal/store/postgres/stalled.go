package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5/pgconn"
)

// stalled ends the connections of gateways that were frozen, cut off or slow while sending the statements of a
// transaction. They keep their locks, and no time limit of the server applies while it waits for the rest. A role may
// end its own connections.
const stalled = `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
	WHERE datname = current_database() AND usename = current_user
		AND application_name = current_setting('application_name') AND pid <> pg_backend_pid()
		AND wait_event = 'ClientRead' AND xact_start < pg_catalog.clock_timestamp() - INTERVAL '1.5 seconds'`

// unblock ends such connections if err is that waiting for a lock took too long.
func (db *DB) unblock(ctx context.Context, err error) {
	var refused *pgconn.PgError
	if errors.As(err, &refused) && refused.Code == lockTimeout {
		_, _ = db.pool.Exec(ctx, stalled) // the caller has an error already, and retries
	}
}

const lockTimeout = "55P03" // lock_not_available
