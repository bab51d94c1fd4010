package postgres

import (
	"context"
	"crypto/rand"
	"database/sql"
	"strings"

	"switchyard/internal/domain"
	"switchyard/internal/store"
)

const identityKey = "identity"

// origin identifies what a restored database has anew: the cluster, the database, its tables and its timeline.
const origin = `SELECT concat_ws('/', system_identifier,
	(SELECT oid FROM pg_database WHERE datname = current_database()), 'stream'::regclass::oid,
	left(pg_walfile_name(pg_current_wal_lsn()), 8)) FROM pg_control_system()`

// Identity returns a random text that belongs to this database. A new one has another, and so has one that was
// restored, or that a standby took over, which may lack the last events.
func (db *DB) Identity(ctx context.Context) (id string, err error) {
	err = db.Tx(ctx, []domain.Topic{}, func(tx *sql.Tx) error {
		var now, stored string
		if err := tx.QueryRowContext(ctx, origin).Scan(&now); err != nil {
			return err
		}
		// Of several gateways that find none, one decides.
		const ensure = "INSERT INTO state (key, value) VALUES ($1, '') ON CONFLICT DO NOTHING"
		if _, err := tx.ExecContext(ctx, ensure, identityKey); err != nil {
			return err
		}
		const locked = "SELECT value FROM state WHERE key = $1 FOR UPDATE"
		if err := tx.QueryRowContext(ctx, locked, identityKey).Scan(&stored); err != nil {
			return err
		}
		var from string
		if id, from, _ = strings.Cut(stored, " "); id != "" && from == now {
			return nil
		}
		id = rand.Text()
		_, err := tx.ExecContext(ctx, store.PutState, identityKey, id+" "+now)
		return err
	})
	return id, err
}
