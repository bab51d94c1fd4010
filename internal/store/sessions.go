package store

import (
	"context"
	"time"

	"switchyard/internal/domain"
)

// AddSession stores a new session and ends the oldest ones of its account, so that at most most remain.
func (db access) AddSession(ctx context.Context, e *domain.AuditEntry, s domain.Session, most int) error {
	return db.change(ctx, e, topics{domain.TopicAccess},
		Do(`DELETE FROM sessions WHERE account = $1 AND id NOT IN (
			SELECT id FROM sessions WHERE account = $1 ORDER BY created_at_ms DESC, id LIMIT $2)`, s.Account, most-1),
		Do(`INSERT INTO sessions (id, who, account, via, role, token_id, created_at_ms, last_seen_ms)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
			s.ID, s.Who, s.Account, s.Via, s.Role, s.TokenID, s.CreatedAt.UnixMilli(), s.LastSeen.UnixMilli()))
}

// Sessions returns all sessions, in no particular order.
func (db access) Sessions(ctx context.Context) ([]domain.Session, error) {
	return selectAll(ctx, db.conn, func(row Row) (s domain.Session, err error) {
		err = row.Scan(&s.ID, &s.Who, &s.Account, &s.Via, &s.Role, &s.TokenID, (*Milli)(&s.CreatedAt),
			(*Milli)(&s.LastSeen))
		return s, err
	}, "SELECT id, who, account, via, role, token_id, created_at_ms, last_seen_ms FROM sessions")
}

// RemoveSession ends a session. It returns NotFound when there is no such session.
func (db access) RemoveSession(ctx context.Context, e *domain.AuditEntry, id string) error {
	return db.changeOne(ctx, e, topics{domain.TopicAccess}, "DELETE FROM sessions WHERE id = $1", id)
}

// RemoveOtherSessions ends all sessions but one. It returns NotFound when there are no others.
func (db access) RemoveOtherSessions(ctx context.Context, e *domain.AuditEntry, id string) error {
	return db.changeOne(ctx, e, topics{domain.TopicAccess}, "DELETE FROM sessions WHERE id <> $1", id)
}

func (db access) RemoveSessionsBefore(ctx context.Context, then time.Time) error {
	_, err := db.exec(ctx, topics{domain.TopicAccess}, "DELETE FROM sessions WHERE created_at_ms < $1", then.UnixMilli())
	return err
}

// SaveUses stores when sessions were last seen and named tokens last used, by id, all in one transaction. It skips
// those that have been removed.
func (db access) SaveUses(ctx context.Context, sessions, tokens map[string]time.Time) error {
	var steps []Step
	save := func(statement string, uses map[string]time.Time) {
		for id, at := range uses {
			steps = append(steps, Do(statement, id, at.UnixMilli()))
		}
	}
	save("UPDATE sessions SET last_seen_ms = $2 WHERE id = $1", sessions)
	save("UPDATE named_tokens SET last_used_ms = $2 WHERE id = $1", tokens)
	return db.Tx(ctx, topics{domain.TopicAccess}, steps...)
}

// AddNamedToken stores a new named token. A token of an agent's command replaces the agent's last one.
func (db access) AddNamedToken(ctx context.Context, e *domain.AuditEntry, t domain.NamedToken) error {
	return db.change(ctx, e, topics{domain.TopicAccess}, endAgentTokens("agent_id = $1", t.AgentID),
		Do(`INSERT INTO named_tokens (id, name, role, hash, project, agent_id, created_at_ms,
			expires_at_ms, last_used_ms, created_by) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
			t.ID, t.Name, t.Role, t.Hash, t.Project, t.AgentID, ToMilli(t.CreatedAt), ToMilli(t.ExpiresAt),
			ToMilli(t.LastUsed), Text(t.CreatedBy)))
}

// NamedTokens returns all named tokens, in no particular order.
func (db access) NamedTokens(ctx context.Context) ([]domain.NamedToken, error) {
	return selectAll(ctx, db.conn, func(row Row) (t domain.NamedToken, err error) {
		err = row.Scan(&t.ID, &t.Name, &t.Role, &t.Hash, &t.Project, &t.AgentID,
			(*Milli)(&t.CreatedAt), (*Milli)(&t.ExpiresAt), (*Milli)(&t.LastUsed), &t.CreatedBy)
		return t, err
	}, `SELECT id, name, role, hash, project, agent_id, created_at_ms, expires_at_ms, last_used_ms, created_by
		FROM named_tokens`)
}

// RemoveNamedToken removes a named token, the sessions made with it, and its claims. It returns NotFound when there is
// no such token.
func (db access) RemoveNamedToken(ctx context.Context, e *domain.AuditEntry, id string) error {
	return db.change(ctx, e, topics{domain.TopicAccess, domain.TopicClaims}, endClaimsOfTokens("id = $1", id),
		Must("DELETE FROM named_tokens WHERE id = $1", id), Do("DELETE FROM sessions WHERE token_id = $1", id))
}

// EndClaimsOfExpired ends the claims of tokens that have expired at now.
func (db access) EndClaimsOfExpired(ctx context.Context, now time.Time) error {
	ended := endClaimsOfTokens("expires_at_ms > 0 AND expires_at_ms <= $1", now.UnixMilli())
	return db.change(ctx, nil, topics{domain.TopicClaims}, ended)
}

// endClaimsOfTokens ends the claims of the named tokens that match a condition. An agent keeps its claims when the
// token of its command ends.
func endClaimsOfTokens(condition string, args ...any) Step {
	held := "holder IN (SELECT '" + domain.TokenHolder + "' || id FROM named_tokens WHERE " + condition + ")"
	return All(keepEnded(held, args...), Do("DELETE FROM claims WHERE "+held, args...))
}

func (db access) RemoveTokensExpiredBefore(ctx context.Context, then time.Time) error {
	_, err := db.exec(ctx, topics{domain.TopicAccess},
		"DELETE FROM named_tokens WHERE expires_at_ms > 0 AND expires_at_ms <= $1", then.UnixMilli())
	return err
}
