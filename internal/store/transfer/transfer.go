// Package transfer moves the whole database from SQLite to PostgreSQL.
package transfer

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"switchyard/internal/store"
	"switchyard/internal/store/postgres"
	"switchyard/internal/store/sqlite"
)

// Run moves the database in directory dir, which nobody else may use, and its session key into the empty PostgreSQL
// database at url, and marks the one in dir as moved. It reports its progress to report. After an error both are
// unchanged, unless marking dir failed.
func Run(ctx context.Context, dir, url string, sessionKey []byte, report func(format string, args ...any)) (err error) {
	loaded := false
	defer func() {
		if err != nil && !loaded && ctx.Err() != nil {
			err = fmt.Errorf("stopped: nothing was moved, and %s is unchanged", dir)
		}
	}()
	target, err := postgres.OpenEmpty(ctx, url)
	if err != nil {
		return err
	}
	defer target.Close()
	source, err := sqlite.Open(ctx, dir)
	if err != nil {
		return err
	}
	defer source.Close()
	rows, err := sqlite.OpenReadOnly(dir)
	if err != nil {
		return err
	}
	defer rows.Close()
	open := func(name string) (postgres.Table, error) { return table(ctx, rows, name, report) }
	if err := target.Load(ctx, names, open, sessionKey); err != nil {
		return err
	}
	loaded = true
	if err := source.MarkMoved(context.WithoutCancel(ctx), postgres.Address(url)); err != nil {
		return fmt.Errorf("everything is in %s now, but %s could not be marked as moved; remove it,"+
			" so that no gateway starts on it: %w", postgres.Address(url), dir, err)
	}
	return nil
}

// names are the tables that are moved, in this order. Both databases have the same columns.
var names = []string{
	"state", "projects", "feed_cursors", "join_tokens", "agents", "seen_once", "sessions", "named_tokens", "audit",
	"removals", "acknowledgements", "questions", "claims", "story_changes", "reviews", "texts", "stories",
	"events", "event_digests", "stage_visits", "visit_counts", "histories", "targets", "noted_alerts",
	"target_messages", "deliveries", "delivery_hours", "digests", "agent_sessions",
	"usage_calls", "usage_spans", "usage_sums", "usage_sessions", "ended_claims",
}

// reportEvery is how often the progress of a large table is reported.
const reportEvery = 5 * time.Second

func table(
	ctx context.Context, source *sql.DB, name string, report func(format string, args ...any),
) (t postgres.Table, err error) {
	t.Name = name
	if err := source.QueryRowContext(ctx, "SELECT COUNT(*) FROM "+name).Scan(&t.Count); err != nil {
		return t, err
	}
	rows, err := source.QueryContext(ctx, "SELECT * FROM "+name)
	if err != nil {
		return t, err
	}
	if t.Columns, err = rows.Columns(); err != nil {
		return t, errors.Join(err, rows.Close())
	}
	read, reported := 0, time.Now()
	t.Next = func() ([]any, error) {
		if !rows.Next() {
			if t.Count > 0 {
				report("%s: %d", name, t.Count)
			}
			return nil, errors.Join(rows.Err(), rows.Close())
		}
		values, targets := make([]any, len(t.Columns)), make([]any, len(t.Columns))
		for i := range values {
			targets[i] = &values[i]
		}
		if err := rows.Scan(targets...); err != nil {
			return nil, errors.Join(err, rows.Close())
		}
		for i, value := range values {
			if text, ok := value.(string); ok {
				values[i] = store.Text(text)
			}
		}
		if read++; time.Since(reported) > reportEvery {
			reported = time.Now()
			report("%s: %d of %d", name, read, t.Count)
		}
		return values, nil
	}
	return t, nil
}
