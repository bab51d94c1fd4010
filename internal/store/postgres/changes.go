package postgres

import (
	"context"

	"switchyard/internal/domain"
)

// versions are statements that select, for each topic, a value that differs after each change. A row's xmin is the
// transaction that wrote it.
var versions = map[domain.Topic]string{
	domain.TopicProjects: `SELECT concat_ws(' ', count(*), sum(xmin::text::bigint),
		(SELECT concat_ws(' ', xmin, value) FROM state WHERE key = 'active_project')) FROM projects`,
	domain.TopicAccess: `SELECT concat_ws(' ',
		(SELECT concat_ws(' ', count(*), sum(xmin::text::bigint)) FROM sessions), '/', count(*),
		sum(xmin::text::bigint)) FROM named_tokens`,
	domain.TopicAgents:           `SELECT concat_ws(' ', count(*), sum(xmin::text::bigint)) FROM agents`,
	domain.TopicVisits:           "SELECT COALESCE(MAX(changed), 0)::text FROM stage_visits",
	domain.TopicAcknowledgements: `SELECT concat_ws(' ', count(*), sum(xmin::text::bigint)) FROM acknowledgements`,
}

// Version returns a value that differs after each change of a topic.
func (db *DB) Version(ctx context.Context, topic domain.Topic) (version string, err error) {
	err = db.tables.QueryRowContext(ctx, versions[topic]).Scan(&version)
	return version, db.Translate(err)
}
