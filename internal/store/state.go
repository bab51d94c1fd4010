package store

import (
	"context"
	"database/sql"
	"errors"
)

// State returns the small durable value under key, "" when there is none.
func (db *Tables) State(ctx context.Context, key string) (string, error) {
	var value string
	err := db.engine.Read.QueryRowContext(ctx, "SELECT value FROM state WHERE key = $1", key).Scan(&value)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return value, db.Translate(err)
}

// SetState stores value under key, in place of what is there.
func (db *Tables) SetState(ctx context.Context, key, value string) error {
	_, err := db.exec(ctx, nil,
		"INSERT INTO state (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = excluded.value", key, value)
	return err
}
