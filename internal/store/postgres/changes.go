package postgres

import (
	"context"
	"time"

	"switchyard/internal/domain"
)

// versions are statements that select, for each topic, a value that differs after each change. A row's xmin is the transaction that
// wrote it.
var versions = map[domain.Topic]string{
	domain.TopicProjects: `SELECT concat_ws(' ', count(*), sum(xmin::text::bigint),
		(SELECT concat_ws(' ', xmin, value) FROM state WHERE key = 'active_project')) FROM projects`,
	domain.TopicAccess: `SELECT concat_ws(' ', (SELECT concat_ws(' ', count(*), sum(xmin::text::bigint)) FROM sessions), '/', count(*),
		sum(xmin::text::bigint)) FROM named_tokens`,
	domain.TopicAcknowledgements: `SELECT concat_ws(' ', count(*), sum(xmin::text::bigint)) FROM acknowledgements`,
}

// Version returns a value that differs after each change of a topic: the registry, access or acknowledgements.
func (db *DB) Version(ctx context.Context, topic domain.Topic) (version string, err error) {
	err = db.tables.QueryRowContext(ctx, versions[topic]).Scan(&version)
	return version, db.Translate(err)
}

// AgentsSince returns the agents that have changed since a position, all for 0, and the next position. That is before any transaction
// in progress, so some agents may be returned again.
func (db *DB) AgentsSince(ctx context.Context, position int64) (news domain.AgentNews, err error) {
	rows, err := db.tables.QueryContext(ctx, `SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint, (SELECT count(*) FROM agents),
		id, label, version, secret_hash, state, detail, assigned_project, joined_at_ms, state_since_ms, last_seen_ms,
		(EXTRACT(EPOCH FROM clock_timestamp() - seen_at) * 1000)::bigint
		FROM (SELECT) AS always LEFT JOIN agents ON changed >= $1`, position)
	if err != nil {
		return news, db.Translate(err)
	}
	defer rows.Close()
	for rows.Next() {
		var a domain.SeenAgent
		var id, label, version, hash, state, detail, project *string
		var joined, since, seen, silent *int64
		err := rows.Scan(&news.Position, &news.Count, &id, &label, &version, &hash, &state, &detail, &project, &joined, &since, &seen, &silent)
		if err != nil {
			return news, db.Translate(err)
		}
		if id == nil { // none has changed
			break
		}
		a.ID, a.Label, a.Version, a.SecretHash, a.State, a.Detail, a.Project = *id, *label, *version, *hash, domain.AgentState(*state), *detail, *project
		a.JoinedAt, a.StateSince, a.LastSeen = time.UnixMilli(*joined), time.UnixMilli(*since), time.UnixMilli(*seen)
		a.Silent = time.Duration(*silent) * time.Millisecond
		news.Changed = append(news.Changed, a)
	}
	return news, db.Translate(rows.Err())
}

// AgentIDs returns the ids of all agents.
func (db *DB) AgentIDs(ctx context.Context) (ids []string, err error) {
	return db.SelectTexts(ctx, "SELECT id FROM agents")
}
