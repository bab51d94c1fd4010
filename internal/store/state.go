package store

import (
	"context"
	"database/sql"
	"time"
)

// State returns the small durable value under key, "" when there is none.
func (db state) State(ctx context.Context, key string) (string, error) {
	var value string
	err := db.engine.Read.QueryRowContext(ctx, "SELECT value FROM state WHERE key = $1", key).Scan(&value)
	if IsMissing(err) {
		return "", nil
	}
	return value, db.Translate(err)
}

// PutState is a statement that stores the value $2 under the key $1, replacing any other.
const PutState = "INSERT INTO state (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = excluded.value"

// SetState stores value under key, replacing any other.
func (db state) SetState(ctx context.Context, key, value string) error {
	_, err := db.exec(ctx, nil, PutState, key, value)
	return err
}

// SetLeaderState is SetState under the leader's fencing token. It returns ErrNotLeader once another gateway has taken
// over.
func (db state) SetLeaderState(ctx context.Context, token int64, key, value string) error {
	return db.LeaderTx(ctx, token, nil, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, PutState, key, value)
		return err
	})
}

// LeaderState is the state of Tables, which it changes under the leader's fencing token.
type LeaderState struct {
	*Tables
	Token int64
}

// SetState stores value under key, replacing any other. It returns ErrNotLeader once another gateway has taken over.
func (s LeaderState) SetState(ctx context.Context, key, value string) error {
	return s.SetLeaderState(ctx, s.Token, key, value)
}

// TryWrite makes a harmless write, which updates WriteFailure.
func (db state) TryWrite(ctx context.Context) error {
	return db.SetState(ctx, "last_try", time.Now().UTC().Format(time.RFC3339))
}
