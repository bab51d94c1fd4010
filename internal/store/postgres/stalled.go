package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5/pgconn"
)

// stalled selects and ends the connections of gateways that began to send statements and never finished, frozen or cut off in the
// middle. They hold their locks all the while: no time limit of the server counts there, since it waits for the rest of what was
// sent. The role of the gateways may end its own connections.
const stalled = `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
	WHERE datname = current_database() AND usename = current_user AND application_name = current_setting('application_name') AND pid <> pg_backend_pid()
		AND state = 'active' AND wait_event = 'ClientRead' AND state_change < clock_timestamp() - INTERVAL '1.5 seconds'`

// unblock ends connections that block others for ever, if err is that of having waited too long for a lock.
func (db *DB) unblock(ctx context.Context, err error) {
	var refused *pgconn.PgError
	if errors.As(err, &refused) && refused.Code == lockTimeout {
		_, _ = db.appends.Exec(ctx, stalled) // the caller has an error already, and will be here again
	}
}

const lockTimeout = "55P03" // lock_not_available
