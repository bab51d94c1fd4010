package postgres

import (
	"context"
	"database/sql"
	"errors"

	"switchyard/internal/domain"
)

// leaseHeld locks the key of the lease under a token, so that no other gateway takes over before the transaction is
// committed.
const leaseHeld = "SELECT TRUE FROM lease WHERE token = $1 FOR KEY SHARE"

// fence returns domain.ErrNotLeader if another gateway has taken over since the token was granted.
func (db *DB) fence(ctx context.Context, tx *sql.Tx, token int64) error {
	return db.holds(tx.QueryRowContext(ctx, leaseHeld, token), token)
}

// holds returns domain.ErrNotLeader if there is no row.
func (db *DB) holds(row interface{ Scan(...any) error }, token int64) error {
	var held bool
	err := row.Scan(&held)
	if errors.Is(err, sql.ErrNoRows) { // includes pgx.ErrNoRows
		db.refuse(token)
		return domain.ErrNotLeader
	}
	return err
}

// refuse tells that a write under the token was refused.
func (db *DB) refuse(token int64) {
	if db.Refused != nil {
		db.Refused(token)
	}
}
