package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"time"

	"switchyard/internal/clock"
)

// loginLife is longer than a login may take. requestLife is longer than chat servers retry a request, and than a
// signature is valid.
const loginLife, requestLife = time.Hour, 2 * time.Hour

// SpendLogin records that the callback of the login with that state has arrived. It returns false if that was recorded
// before.
func (db access) SpendLogin(ctx context.Context, state string) (first bool, err error) {
	return db.once(ctx, "login", state, loginLife)
}

// RecordBotRequest records a request of a chat server. It returns false if it was recorded before.
func (db access) RecordBotRequest(ctx context.Context, id string) (first bool, err error) {
	return db.once(ctx, "bot request", id, requestLife)
}

// once records a key, for at least life, and reports whether it is new.
func (db access) once(ctx context.Context, kind, id string, life time.Duration) (first bool, err error) {
	sum, now := sha256.Sum256([]byte(id)), clock.Now()
	err = db.Tx(ctx, nil, func(tx *sql.Tx) error {
		const forget = "DELETE FROM seen_once WHERE kind = $1 AND at_ms < $2"
		if _, err := tx.ExecContext(ctx, forget, kind, now.Add(-life).UnixMilli()); err != nil {
			return err
		}
		const add = "INSERT INTO seen_once (kind, digest, at_ms) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING"
		result, err := tx.ExecContext(ctx, add, kind, hex.EncodeToString(sum[:]), now.UnixMilli())
		if err != nil {
			return err
		}
		n, err := result.RowsAffected()
		first = n == 1
		return err
	})
	return first, err
}
