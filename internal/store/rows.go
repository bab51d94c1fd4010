package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"
)

// snapshot runs fn in a read-only transaction that sees one state of the database, on a connection of a pool.
func (db *conn) snapshot(ctx context.Context, pool *sql.DB, fn func(context.Context, *sql.Tx) error) error {
	tx, err := pool.BeginTx(ctx, &sql.TxOptions{ReadOnly: true, Isolation: db.engine.Snapshot})
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // read-only
	return fn(ctx, tx)
}

// Snapshot is snapshot on a connection for reads.
func (db *conn) Snapshot(ctx context.Context, fn func(context.Context, *sql.Tx) error) error {
	return db.snapshot(ctx, db.engine.Read, fn)
}

// search runs fn like snapshot, on a connection for searches and within their time limit.
func (db *conn) search(ctx context.Context, fn func(context.Context, *sql.Tx) error) error {
	limited, cancel := context.WithTimeout(ctx, db.engine.SearchLimit)
	defer cancel()
	err := db.snapshot(limited, db.engine.Searches, fn)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		return errTooLong
	}
	return err
}

type Querier interface {
	QueryContext(ctx context.Context, statement string, args ...any) (*sql.Rows, error)
}

func Exec(ctx context.Context, tx *sql.Tx, statement string, args ...any) error {
	return Do(statement, args...)(ctx, tx)
}

// Step is a part of a transaction.
type Step func(ctx context.Context, tx *sql.Tx) error

// Do executes a statement.
func Do(statement string, args ...any) Step {
	return func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, statement, args...)
		return err
	}
}

// Must executes a statement, and returns sql.ErrNoRows if it changed no row.
func Must(statement string, args ...any) Step {
	return func(ctx context.Context, tx *sql.Tx) error {
		result, err := tx.ExecContext(ctx, statement, args...)
		if err != nil {
			return err
		}
		if n, _ := result.RowsAffected(); n == 0 { // both engines know
			return sql.ErrNoRows
		}
		return nil
	}
}

// Get executes a statement that returns a row, and scans it into values. It returns sql.ErrNoRows without one.
func Get(statement string, args []any, values ...any) Step {
	return func(ctx context.Context, tx *sql.Tx) error {
		return tx.QueryRowContext(ctx, statement, args...).Scan(values...)
	}
}

// Try runs a step of Must, and says in changed whether it changed a row; changing none is no error.
func Try(changed *bool, step Step) Step {
	return func(ctx context.Context, tx *sql.Tx) error {
		err := step(ctx, tx)
		*changed = err == nil
		return unlessMissing(err)
	}
}

// All runs steps one after another.
func All(steps ...Step) Step {
	return func(ctx context.Context, tx *sql.Tx) error {
		for _, step := range steps {
			if err := step(ctx, tx); err != nil {
				return err
			}
		}
		return nil
	}
}

type Row interface{ Scan(...any) error }

// Each calls each with every row that a statement selects, until it returns an error.
func Each(ctx context.Context, from Querier, each func(Row) error, statement string, args ...any) error {
	rows, err := from.QueryContext(ctx, statement, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := each(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

var errEnough = errors.New("no more rows are wanted")

// EachRow calls yield with each row that a statement selects, read by scan, until yield returns false.
func EachRow[T any](
	ctx context.Context, from Querier, scan func(Row) (T, error), yield func(T) bool, statement string, args ...any,
) error {
	err := Each(ctx, from, func(row Row) error {
		found, err := scan(row)
		if err == nil && !yield(found) {
			err = errEnough
		}
		return err
	}, statement, args...)
	if err == errEnough {
		return nil
	}
	return err
}

// AllRows returns all rows that a statement selects, read by scan.
func AllRows[T any](
	ctx context.Context, from Querier, scan func(Row) (T, error), statement string, args ...any,
) (all []T, err error) {
	err = Each(ctx, from, func(row Row) error {
		one, err := scan(row)
		all = append(all, one)
		return err
	}, statement, args...)
	return all, err
}

// selectAll is AllRows outside a transaction, and translates errors.
func selectAll[T any](
	ctx context.Context, db *conn, scan func(Row) (T, error), statement string, args ...any,
) ([]T, error) {
	all, err := AllRows(ctx, db.engine.Read, scan, statement, args...)
	return all, db.Translate(err)
}

// selectOne returns the row that a statement selects, and translates errors: NotFound without one.
func selectOne[T any](
	ctx context.Context, db *conn, scan func(Row) (T, error), statement string, args ...any,
) (T, error) {
	one, err := scan(db.engine.Read.QueryRowContext(ctx, statement, args...))
	return one, db.Translate(err)
}

func ScanOne[T any](row Row) (value T, err error) {
	err = row.Scan(&value)
	return value, err
}

func List(ids []int64) string {
	return strings.Trim(strings.Join(strings.Fields(fmt.Sprint(ids)), ","), "[]")
}

// IsMissing reports whether nothing was found.
func IsMissing(err error) bool { return errors.Is(err, sql.ErrNoRows) }

// unlessMissing returns err, nil if nothing was found.
func unlessMissing(err error) error {
	if IsMissing(err) {
		return nil
	}
	return err
}

// Milli scans a time that is stored as Unix milliseconds; 0 is the zero time.
type Milli time.Time

func (m *Milli) Scan(value any) error {
	ms, ok := value.(int64)
	if !ok {
		return fmt.Errorf("%T is not a time in milliseconds", value)
	}
	*m = Milli{}
	if ms != 0 {
		*m = Milli(time.UnixMilli(ms))
	}
	return nil
}

// ToMilli returns the stored form of a time: Unix milliseconds, 0 for the zero time.
func ToMilli(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}
