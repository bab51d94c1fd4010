package store

import (
	"context"
	"database/sql"
	"time"

	"switchyard/internal/domain"
)

// AddNamedToken stores a new named token. A token of an agent's command replaces the agent's last one.
func (db access) AddNamedToken(ctx context.Context, t domain.NamedToken) error {
	return db.Tx(ctx, topics{domain.TopicAccess}, func(tx *sql.Tx) error {
		if t.AgentID != "" {
			if err := endAgentTokens(ctx, tx, "agent_id = $1", t.AgentID); err != nil {
				return err
			}
		}
		_, err := tx.ExecContext(ctx, "INSERT INTO named_tokens (id, name, role, hash, project, agent_id, created_at_ms, "+
			"expires_at_ms, last_used_ms)"+
			" VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
			t.ID, t.Name, t.Role, t.Hash, t.Project, t.AgentID, ToMilli(t.CreatedAt), ToMilli(t.ExpiresAt), ToMilli(t.LastUsed))
		return err
	})
}

// NamedTokens returns all named tokens, in no particular order.
func (db access) NamedTokens(ctx context.Context) ([]domain.NamedToken, error) {
	rows, err := db.engine.Read.QueryContext(ctx,
		"SELECT id, name, role, hash, project, agent_id, created_at_ms, expires_at_ms, last_used_ms FROM named_tokens")
	if err != nil {
		return nil, db.Translate(err)
	}
	defer rows.Close()
	var tokens []domain.NamedToken
	for rows.Next() {
		var t domain.NamedToken
		err := rows.Scan(&t.ID, &t.Name, &t.Role, &t.Hash, &t.Project, &t.AgentID,
			(*Milli)(&t.CreatedAt), (*Milli)(&t.ExpiresAt), (*Milli)(&t.LastUsed))
		if err != nil {
			return nil, db.Translate(err)
		}
		tokens = append(tokens, t)
	}
	return tokens, db.Translate(rows.Err())
}

// RemoveNamedToken removes a named token and the sessions made with it. It returns NotFound when there is no such
// token.
func (db access) RemoveNamedToken(ctx context.Context, id string) error {
	return db.Tx(ctx, topics{domain.TopicAccess}, func(tx *sql.Tx) error {
		result, err := tx.ExecContext(ctx, "DELETE FROM named_tokens WHERE id = $1", id)
		if err != nil {
			return err
		}
		if err := changed(result); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, "DELETE FROM sessions WHERE token_id = $1", id)
		return err
	})
}

// RemoveTokensExpiredBefore removes the named tokens that expired before then.
func (db access) RemoveTokensExpiredBefore(ctx context.Context, then time.Time) error {
	_, err := db.exec(ctx, topics{domain.TopicAccess},
		"DELETE FROM named_tokens WHERE expires_at_ms > 0 AND expires_at_ms <= $1", then.UnixMilli())
	return err
}
