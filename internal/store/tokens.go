package store

import (
	"context"
	"database/sql"
	"time"

	"switchyard/internal/domain"
)

// AddToken stores a new join token. It returns Conflict when there is one of the same hash.
func (db *DB) AddToken(ctx context.Context, t domain.JoinToken) error {
	_, err := db.exec(ctx,
		"INSERT INTO join_tokens (hash, created_at_ms, expires_at_ms, project) VALUES ($1, $2, $3, $4)",
		t.Hash, t.CreatedAt.UnixMilli(), t.ExpiresAt.UnixMilli(), t.Project)
	return err
}

const tokenColumns = "hash, created_at_ms, expires_at_ms, used_at_ms, used_by, project"

// Token returns the join token of that hash, NotFound when there is none.
func (db *DB) Token(ctx context.Context, hash string) (domain.JoinToken, error) {
	var t domain.JoinToken
	err := db.read.QueryRowContext(ctx, "SELECT "+tokenColumns+" FROM join_tokens WHERE hash = $1", hash).
		Scan(&t.Hash, (*milli)(&t.CreatedAt), (*milli)(&t.ExpiresAt), (*milli)(&t.UsedAt), &t.UsedBy, &t.Project)
	return t, translate(err)
}

// UnusedTokens returns the tokens that could still be redeemed at now, the first to expire first.
func (db *DB) UnusedTokens(ctx context.Context, now time.Time) ([]domain.JoinToken, error) {
	rows, err := db.read.QueryContext(ctx, "SELECT "+tokenColumns+
		" FROM join_tokens WHERE used_at_ms = 0 AND expires_at_ms > $1 ORDER BY expires_at_ms, hash", now.UnixMilli())
	if err != nil {
		return nil, translate(err)
	}
	defer rows.Close()
	var tokens []domain.JoinToken
	for rows.Next() {
		var t domain.JoinToken
		if err := rows.Scan(&t.Hash, (*milli)(&t.CreatedAt), (*milli)(&t.ExpiresAt), (*milli)(&t.UsedAt), &t.UsedBy, &t.Project); err != nil {
			return nil, translate(err)
		}
		tokens = append(tokens, t)
	}
	return tokens, translate(rows.Err())
}

// RevokeToken removes an unused token. It returns NotFound when there is no unused one of that hash.
func (db *DB) RevokeToken(ctx context.Context, hash string) error {
	return db.changeOne(ctx, "DELETE FROM join_tokens WHERE hash = $1 AND used_at_ms = 0", hash)
}

// ForgetTokens removes the tokens that expired before then, used or not.
func (db *DB) ForgetTokens(ctx context.Context, before time.Time) error {
	_, err := db.exec(ctx, "DELETE FROM join_tokens WHERE expires_at_ms < $1", before.UnixMilli())
	return err
}

// changeOne executes a statement and returns NotFound when it changed no row. The end of ctx does not interrupt it: then
// nobody would know whether it was stored.
func (db *DB) changeOne(ctx context.Context, statement string, args ...any) error {
	result, err := db.exec(context.WithoutCancel(ctx), statement, args...)
	if err != nil {
		return err
	}
	return translate(changed(result))
}

// changed returns sql.ErrNoRows when a statement changed no row.
func changed(result sql.Result) error {
	n, err := result.RowsAffected()
	if err == nil && n == 0 {
		err = sql.ErrNoRows
	}
	return err
}
