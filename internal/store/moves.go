package store

import (
	"context"
	"database/sql"
	"time"
)

// SaveMoves stores the moves before a time, in pieces, in place of those that are stored.
func (db *Tables) SaveMoves(ctx context.Context, before time.Time, pieces [][]byte) error {
	return db.Tx(ctx, nil, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, "DELETE FROM moves"); err != nil {
			return err
		}
		for i, moves := range pieces {
			if _, err := tx.ExecContext(ctx, "INSERT INTO moves (id, before_ms, moves) VALUES ($1, $2, $3)", i+1, before.UnixMilli(), moves); err != nil {
				return err
			}
		}
		return nil
	})
}

// Moves returns in how many pieces SaveMoves stored the moves, and before which time they are. It returns NotFound where there are
// none, or where later changes of stays are not in them.
func (db *Tables) Moves(ctx context.Context) (before time.Time, pieces int, err error) {
	err = db.engine.Read.QueryRowContext(ctx, "SELECT before_ms, (SELECT COUNT(*) FROM moves) FROM moves ORDER BY id LIMIT 1").Scan((*Milli)(&before), &pieces)
	return before, pieces, db.Translate(err)
}

// MovesPiece returns a piece of the moves before a time, the first of which is 0. It returns NotFound where they are others by now.
func (db *Tables) MovesPiece(ctx context.Context, piece int, before time.Time) (moves []byte, err error) {
	err = db.engine.Read.QueryRowContext(ctx, "SELECT moves FROM moves WHERE id = $1 AND before_ms = $2", piece+1, before.UnixMilli()).Scan(&moves)
	return moves, db.Translate(err)
}
