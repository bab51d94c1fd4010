package store

import (
	"context"
	"database/sql"
	"time"

	"switchyard/internal/domain"
)

// AddToken stores a new join token and removes the oldest unused ones, so that at most most remain. It returns Conflict
// if there is one with the same hash.
func (db agents) AddToken(ctx context.Context, t domain.JoinToken, most int) error {
	return db.Tx(ctx, topics{domain.TopicAgents}, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "INSERT INTO join_tokens (hash, created_at_ms, expires_at_ms, project) VALUES ($1, "+
			"$2, $3, $4)",
			t.Hash, t.CreatedAt.UnixMilli(), t.ExpiresAt.UnixMilli(), t.Project)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `DELETE FROM join_tokens WHERE hash IN (SELECT hash FROM join_tokens
			WHERE used_at_ms = 0 AND expires_at_ms > $1 AND hash <> $2 ORDER BY created_at_ms DESC, hash LIMIT $4 OFFSET $3)`,
			t.CreatedAt.UnixMilli(), t.Hash, most-1, most)
		return err
	})
}

const tokenColumns = "hash, created_at_ms, expires_at_ms, used_at_ms, used_by, project"

// Token returns the join token with that hash. It returns NotFound.
func (db agents) Token(ctx context.Context, hash string) (domain.JoinToken, error) {
	var t domain.JoinToken
	err := db.engine.Read.QueryRowContext(ctx, "SELECT "+tokenColumns+" FROM join_tokens WHERE hash = $1", hash).
		Scan(&t.Hash, (*Milli)(&t.CreatedAt), (*Milli)(&t.ExpiresAt), (*Milli)(&t.UsedAt), &t.UsedBy, &t.Project)
	return t, db.Translate(err)
}

// UnusedTokens returns the tokens that can still be redeemed at now, sorted by expiry.
func (db agents) UnusedTokens(ctx context.Context, now time.Time) ([]domain.JoinToken, error) {
	rows, err := db.engine.Read.QueryContext(ctx, "SELECT "+tokenColumns+
		" FROM join_tokens WHERE used_at_ms = 0 AND expires_at_ms > $1 ORDER BY expires_at_ms, hash", now.UnixMilli())
	if err != nil {
		return nil, db.Translate(err)
	}
	defer rows.Close()
	var tokens []domain.JoinToken
	for rows.Next() {
		var t domain.JoinToken
		if err := rows.Scan(&t.Hash, (*Milli)(&t.CreatedAt), (*Milli)(&t.ExpiresAt), (*Milli)(&t.UsedAt), &t.UsedBy,
			&t.Project); err != nil {
			return nil, db.Translate(err)
		}
		tokens = append(tokens, t)
	}
	return tokens, db.Translate(rows.Err())
}

// RevokeToken removes an unused token. It returns NotFound if there is no unused one with that hash.
func (db agents) RevokeToken(ctx context.Context, hash string) error {
	return db.changeOne(ctx, topics{domain.TopicAgents}, "DELETE FROM join_tokens WHERE hash = $1 AND used_at_ms = 0",
		hash)
}

// ForgetTokens removes the tokens that expired before before, used or not.
func (db agents) ForgetTokens(ctx context.Context, before time.Time) error {
	_, err := db.exec(ctx, topics{domain.TopicAgents}, "DELETE FROM join_tokens WHERE expires_at_ms < $1",
		before.UnixMilli())
	return err
}
