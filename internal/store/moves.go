package store

import (
	"context"
	"time"
)

// SaveMoves stores the moves before a time, in place of those that are stored.
func (db *Tables) SaveMoves(ctx context.Context, before time.Time, moves []byte) error {
	_, err := db.exec(ctx, nil, "INSERT INTO moves (id, before_ms, moves) VALUES (1, $1, $2) ON CONFLICT (id) DO UPDATE SET before_ms = excluded.before_ms, moves = excluded.moves",
		before.UnixMilli(), moves)
	return err
}

// Moves returns what SaveMoves stored. It returns NotFound when nothing is stored, or when stays have changed since.
func (db *Tables) Moves(ctx context.Context) (before time.Time, moves []byte, err error) {
	err = db.engine.Read.QueryRowContext(ctx, "SELECT before_ms, moves FROM moves").Scan((*Milli)(&before), &moves)
	return before, moves, db.Translate(err)
}
