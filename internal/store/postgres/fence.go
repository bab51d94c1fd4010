package postgres

import (
	"context"
	"database/sql"
	"errors"

	"switchyard/internal/domain"
)

// dutyHeld locks the row of a duty under an epoch, so that no other gateway takes it over before the transaction is committed.
const dutyHeld = "SELECT TRUE FROM duties WHERE name = $1 AND epoch = $2 FOR SHARE"

// fence returns domain.ErrDutyLost if another gateway has taken over the duty in ctx.
func fence(ctx context.Context, tx *sql.Tx) error {
	d, ok := domain.DutyOf(ctx)
	if !ok {
		return nil
	}
	return holds(tx.QueryRowContext(ctx, dutyHeld, d.Name, d.Epoch))
}

// holds returns domain.ErrDutyLost if there is no row.
func holds(row interface{ Scan(...any) error }) error {
	var held bool
	err := row.Scan(&held)
	if errors.Is(err, sql.ErrNoRows) { // includes pgx.ErrNoRows
		return domain.ErrDutyLost
	}
	return err
}
