// Package transfer moves the whole database from SQLite to PostgreSQL.
package transfer

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

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
	if err := target.Load(ctx, m.tables(), sessionKey); err != nil {
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

func (m *move) tables() (loads []postgres.Table) {
	for _, t := range tables {
		loads = append(loads, postgres.Table{
			Name: t.name, Columns: append(t.columns[:len(t.columns):len(t.columns)], t.add...),
			Rows: func() (postgres.Rows, error) { return m.rows(t) },
		})
	}
	return loads
}

// reportEvery is how often the progress of a large table is reported.
const reportEvery = 5 * time.Second

func (m *move) rows(t table) (*rows, error) {
	r := &rows{move: m, table: t, reported: time.Now()}
	if err := m.source.QueryRowContext(m.ctx, "SELECT COUNT(*) FROM "+t.name).Scan(&r.all); err != nil {
		return nil, err
	}
	var err error
	r.found, err = m.source.QueryContext(m.ctx, "SELECT "+strings.Join(t.columns, ", ")+" FROM "+t.name)
	return r, err
}

// rows reads the rows of a table for PostgreSQL's COPY.
type rows struct {
	move     *move
	table    table
	found    *sql.Rows
	all      int64
	read     int64
	reported time.Time
	err      error
}

func (r *rows) Next() bool { return r.err == nil && r.found.Next() }

func (r *rows) Values() (values []any, err error) {
	values = make([]any, len(r.table.columns))
	targets := make([]any, len(values))
	for i := range values {
		targets[i] = &values[i]
	}
	if r.err = r.found.Scan(targets...); r.err != nil {
		return nil, r.err
	}
	if r.table.change != nil {
		if values, r.err = r.table.change(values); r.err != nil {
			return nil, r.err
		}
	}
	for i, value := range values {
		if text, ok := value.(string); ok {
			values[i] = postgres.Text(text)
		}
	}
	if r.read++; time.Since(r.reported) > reportEvery {
		r.reported = time.Now()
		r.move.report("%s: %d of %d", r.table.name, r.read, r.all)
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
		r.move.report("%s: %d", r.table.name, r.all)
	}
	return r.all, nil
}
