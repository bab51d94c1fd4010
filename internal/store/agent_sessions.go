package store

import (
	"context"
	"encoding/json"

	"switchyard/internal/domain"
)

// AgentSessions returns all sessions of coding agents, in no particular order.
func (db agentSessions) AgentSessions(ctx context.Context) ([]domain.AgentSession, error) {
	return selectAll(ctx, db.conn, func(row Row) (s domain.AgentSession, err error) {
		var state string
		if err = row.Scan(&state); err == nil {
			err = json.Unmarshal([]byte(state), &s)
		}
		return s, err
	}, "SELECT state FROM agent_sessions")
}

// SaveAgentSessions stores sessions and removes others in one transaction; for each, what was heard last counts.
func (db agentSessions) SaveAgentSessions(ctx context.Context, now, gone []domain.AgentSession) error {
	rows := func(list []domain.AgentSession, isKept bool) string {
		var rows [][]any
		for _, s := range list {
			row := []any{Text(s.Asker), Key(s.ID), s.Last.UnixMilli()}
			if isKept {
				row = append(row, string(domain.EncodeJSON(s)))
			}
			rows = append(rows, row)
		}
		return jsonText(rows)
	}
	return db.Tx(ctx, topics{domain.TopicSessions},
		Do(db.sql.saveSessions, rows(now, true)), Do(db.sql.dropSessions, rows(gone, false)))
}
