// Package transfer moves the whole database from SQLite to PostgreSQL.
package transfer

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
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
	m := &move{ctx: ctx, source: rows, report: report}
	tables, err := m.tables()
	if err != nil {
		return err
	}
	if err := target.Load(ctx, tables, sessionKey); err != nil {
		return err
	}
	loaded = true
	if err := source.MarkMoved(context.WithoutCancel(ctx), postgres.Address(url)); err != nil {
		return fmt.Errorf("everything is in %s now, but %s could not be marked as moved; remove it,"+
			" so that no gateway starts on it: %w", postgres.Address(url), dir, err)
	}
	return nil
}

type move struct {
	ctx    context.Context
	source *sql.DB
	report func(format string, args ...any)
}

// names are the tables that are moved, in this order. Both databases have the same columns.
var names = []string{
	"state", "projects", "feed_cursors", "join_tokens", "agents", "seen_once", "sessions", "named_tokens", "audit",
	"removals", "acknowledgements", "texts", "stories", "events", "event_digests", "stage_visits", "visit_counts",
}

func (m *move) tables() (tables []postgres.Table, err error) {
	for _, name := range names {
		columns, err := store.AllRows(m.ctx, m.source, store.ScanOne[string],
			"SELECT name FROM pragma_table_info($1)", name)
		if err != nil {
			return nil, err
		}
		table := postgres.Table{Name: name, Columns: columns}
		table.Rows = func() (postgres.Rows, error) { return m.rows(table) }
		tables = append(tables, table)
	}
	return tables, nil
}

// reportEvery is how often the progress of a large table is reported.
const reportEvery = 5 * time.Second

func (m *move) rows(t postgres.Table) (*rows, error) {
	r := &rows{move: m, table: t, reported: time.Now()}
	if err := m.source.QueryRowContext(m.ctx, "SELECT COUNT(*) FROM "+t.Name).Scan(&r.all); err != nil {
		return nil, err
	}
	var err error
	r.found, err = m.source.QueryContext(m.ctx, "SELECT "+strings.Join(t.Columns, ", ")+" FROM "+t.Name)
	return r, err
}

// rows reads the rows of a table for PostgreSQL's COPY.
type rows struct {
	move     *move
	table    postgres.Table
	found    *sql.Rows
	all      int64
	read     int64
	reported time.Time
	err      error
}

func (r *rows) Next() bool { return r.err == nil && r.found.Next() }

func (r *rows) Values() (values []any, err error) {
	values = make([]any, len(r.table.Columns))
	targets := make([]any, len(values))
	for i := range values {
		targets[i] = &values[i]
	}
	if r.err = r.found.Scan(targets...); r.err != nil {
		return nil, r.err
	}
	for i, value := range values {
		if text, ok := value.(string); ok {
			values[i] = store.Text(text)
		}
	}
	if r.read++; time.Since(r.reported) > reportEvery {
		r.reported = time.Now()
		r.move.report("%s: %d of %d", r.table.Name, r.read, r.all)
	}
	return values, nil
}

func (r *rows) Err() error {
	if r.err == nil {
		r.err = r.found.Err()
	}
	return r.err
}

// Close ends reading, and returns the number of rows in the table.
func (r *rows) Close() (count int64, err error) {
	if err := r.found.Close(); err != nil {
		return 0, err
	}
	if r.all > 0 {
		r.move.report("%s: %d", r.table.Name, r.all)
	}
	return r.all, nil
}
