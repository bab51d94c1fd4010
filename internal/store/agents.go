package store

import (
	"context"
	"time"

	"switchyard/internal/domain"
)

// Redeem marks the join token with that hash as used and stores agent, both or neither. At most one of several
// concurrent calls for a token succeeds. It returns NotFound for a token that is unknown, used, revoked, or expired at
// agent.JoinedAt.
func (db agents) Redeem(ctx context.Context, e *domain.AuditEntry, tokenHash string, agent domain.AgentRecord) error {
	return db.change(ctx, e, topics{domain.TopicAgents},
		Must("UPDATE join_tokens SET used_at_ms = $2, used_by = $3 WHERE hash = $1 AND used_at_ms = 0 AND expires_at_ms > $2",
			tokenHash, agent.JoinedAt.UnixMilli(), agent.ID),
		Do(`INSERT INTO agents (id, label, version, secret_hash, state, joined_at_ms,
			state_since_ms, last_seen_ms, assigned_project) VALUES ($1, $2, $3, $4, $5, $6, $6, $6, $7)`,
			agent.ID, agent.Label, agent.Version, agent.SecretHash, agent.State, agent.JoinedAt.UnixMilli(), agent.Project))
}

// AgentRecords returns every agent that has an identity, in no particular order.
func (db agents) AgentRecords(ctx context.Context) ([]domain.AgentRecord, error) {
	return selectAll(ctx, db.conn, func(row Row) (a domain.AgentRecord, err error) {
		err = row.Scan(&a.ID, &a.Label, &a.Version, &a.SecretHash, &a.State, &a.Detail, &a.Project,
			(*Milli)(&a.JoinedAt), (*Milli)(&a.StateSince), (*Milli)(&a.LastSeen))
		return a, err
	}, `SELECT id, label, version, secret_hash, state, detail, assigned_project, joined_at_ms, state_since_ms,
		last_seen_ms FROM agents`)
}

// SaveBeats stores changes by heartbeats, all at once. It skips agents that have been removed.
func (db agents) SaveBeats(ctx context.Context, beats []domain.AgentBeat) error {
	var rows [][]any
	for _, b := range beats {
		row := []any{b.ID, nil, nil, nil, b.LastSeen.UnixMilli()}
		if !b.OnlySeen {
			row[1], row[2], row[3] = string(b.State), b.Detail, b.StateSince.UnixMilli()
		}
		rows = append(rows, row)
	}
	return db.Tx(ctx, topics{domain.TopicAgents}, Do(db.sql.saveBeats, jsonText(rows)))
}

// AssignAgent stores an agent's project, "" for none, and ends the token of its command if that is for another project.
// It returns NotFound when there is no such agent.
func (db agents) AssignAgent(ctx context.Context, e *domain.AuditEntry, id, project string) error {
	return db.change(context.WithoutCancel(ctx), e, topics{domain.TopicAgents, domain.TopicAccess},
		Must(assignAgent, id, project), endAgentTokens("agent_id = $1 AND project <> $2", id, project))
}

const assignAgent = "UPDATE agents SET assigned_project = $2 WHERE id = $1"

// LabelAgent stores an agent's label. It returns NotFound when there is no such agent.
func (db agents) LabelAgent(ctx context.Context, e *domain.AuditEntry, id, label string) error {
	return db.changeOne(ctx, e, topics{domain.TopicAgents}, "UPDATE agents SET label = $2 WHERE id = $1", id, label)
}

// RemoveAgent removes an agent, its claims, and the token of its command. It returns NotFound when there is no such
// agent.
func (db agents) RemoveAgent(ctx context.Context, e *domain.AuditEntry, id string) error {
	about := topics{domain.TopicAgents, domain.TopicAccess, domain.TopicClaims}
	return db.change(context.WithoutCancel(ctx), e, about, Must("DELETE FROM agents WHERE id = $1", id),
		keepEnded("agent_id = $1", id), Do("DELETE FROM claims WHERE agent_id = $1", id), endAgentTokens("agent_id = $1", id))
}

// endAgentTokens removes the tokens of agents' commands that match a condition, and the sessions made with them.
func endAgentTokens(condition string, args ...any) Step {
	ended := " FROM named_tokens WHERE agent_id <> '' AND " + condition
	return All(Do("DELETE FROM sessions WHERE token_id IN (SELECT id"+ended+")", args...), Do("DELETE"+ended, args...))
}

// AddToken stores a new join token and removes the oldest unused ones, so that at most most remain. It returns Conflict
// if there is one with the same hash.
func (db agents) AddToken(ctx context.Context, e *domain.AuditEntry, t domain.JoinToken, most int) error {
	return db.change(ctx, e, topics{domain.TopicAgents},
		Do("INSERT INTO join_tokens (hash, created_at_ms, expires_at_ms, project) VALUES ($1, $2, $3, $4)",
			t.Hash, t.CreatedAt.UnixMilli(), t.ExpiresAt.UnixMilli(), t.Project),
		Do(`DELETE FROM join_tokens WHERE hash IN (SELECT hash FROM join_tokens
			WHERE used_at_ms = 0 AND expires_at_ms > $1 AND hash <> $2 ORDER BY created_at_ms DESC, hash LIMIT $4 OFFSET $3)`,
			t.CreatedAt.UnixMilli(), t.Hash, most-1, most))
}

const tokenColumns = "hash, created_at_ms, expires_at_ms, used_at_ms, used_by, project"

func scanToken(row Row) (t domain.JoinToken, err error) {
	err = row.Scan(
		&t.Hash, (*Milli)(&t.CreatedAt), (*Milli)(&t.ExpiresAt), (*Milli)(&t.UsedAt), &t.UsedBy, &t.Project)
	return t, err
}

// Token returns the join token with that hash. It returns NotFound.
func (db agents) Token(ctx context.Context, hash string) (domain.JoinToken, error) {
	return selectOne(ctx, db.conn, scanToken, "SELECT "+tokenColumns+" FROM join_tokens WHERE hash = $1", hash)
}

// UnusedTokens returns the tokens that can still be redeemed at now, sorted by expiry.
func (db agents) UnusedTokens(ctx context.Context, now time.Time) ([]domain.JoinToken, error) {
	return selectAll(ctx, db.conn, scanToken, "SELECT "+tokenColumns+
		" FROM join_tokens WHERE used_at_ms = 0 AND expires_at_ms > $1 ORDER BY expires_at_ms, hash", now.UnixMilli())
}

// RevokeToken removes an unused token. It returns NotFound if there is no unused one with that hash.
func (db agents) RevokeToken(ctx context.Context, e *domain.AuditEntry, hash string) error {
	return db.changeOne(ctx, e, topics{domain.TopicAgents}, "DELETE FROM join_tokens WHERE hash = $1 AND used_at_ms = 0",
		hash)
}

func (db agents) ForgetTokens(ctx context.Context, before time.Time) error {
	_, err := db.exec(ctx, topics{domain.TopicAgents}, "DELETE FROM join_tokens WHERE expires_at_ms < $1",
		before.UnixMilli())
	return err
}
