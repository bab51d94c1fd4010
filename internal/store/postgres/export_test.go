package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// HoldStream runs fn in a transaction that has the lock of the stream.
func (db *DB) HoldStream(fn func()) error {
	return pgx.BeginFunc(context.Background(), db.appends, func(tx pgx.Tx) error {
		if _, err := tx.Exec(context.Background(), lockStream); err != nil {
			return err
		}
		fn()
		return nil
	})
}
