package store

import (
	"context"
	"database/sql"
	"time"
)

// SaveMoves replaces the stored moves by those before a time, in pieces.
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

// Moves returns the number of pieces that SaveMoves stored, and the time before which all moves are. It returns NotFound if there are
// none, or if they lack later changes of stays.
func (db *Tables) Moves(ctx context.Context) (before time.Time, pieces int, err error) {
	err = db.engine.Read.QueryRowContext(ctx, "SELECT before_ms, (SELECT COUNT(*) FROM moves) FROM moves ORDER BY id LIMIT 1").Scan((*Milli)(&before), &pieces)
	return before, pieces, db.Translate(err)
}

// MovesPiece returns a piece, from 0, of the moves before a time. It returns NotFound if they have been replaced.
func (db *Tables) MovesPiece(ctx context.Context, piece int, before time.Time) (moves []byte, err error) {
	err = db.engine.Read.QueryRowContext(ctx, "SELECT moves FROM moves WHERE id = $1 AND before_ms = $2", piece+1, before.UnixMilli()).Scan(&moves)
	return moves, db.Translate(err)
}
