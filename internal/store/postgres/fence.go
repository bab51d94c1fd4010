package postgres

import (
	"context"
	"database/sql"
	"errors"

	"switchyard/internal/domain"
)

// leaseHeld locks the key of the lease under a token, so that no other gateway takes over before the transaction is committed.
const leaseHeld = "SELECT TRUE FROM lease WHERE token = $1 FOR KEY SHARE"

// fence returns domain.ErrNotLeader if another gateway has taken over since the token was granted.
func fence(ctx context.Context, tx *sql.Tx, token int64) error {
	return holds(tx.QueryRowContext(ctx, leaseHeld, token))
}

// holds returns domain.ErrNotLeader if there is no row.
func holds(row interface{ Scan(...any) error }) error {
	var held bool
	err := row.Scan(&held)
	if errors.Is(err, sql.ErrNoRows) { // includes pgx.ErrNoRows
		return domain.ErrNotLeader
	}
	return err
}
