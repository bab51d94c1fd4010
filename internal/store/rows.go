package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"
)

// snapshot runs fn in a read-only transaction that sees one state of the database.
func (db *conn) snapshot(ctx context.Context, pool *sql.DB, fn func(context.Context, *sql.Tx) error) error {
	tx, err := pool.BeginTx(ctx, &sql.TxOptions{ReadOnly: true, Isolation: db.engine.Snapshot})
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // read-only
	return fn(ctx, tx)
}

// Snapshot runs fn in a read-only transaction that sees one state of the database.
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

// Querier is a database or a transaction.
type Querier interface {
	QueryContext(ctx context.Context, statement string, args ...any) (*sql.Rows, error)
}

// EachRow calls yield with each row that a statement selects, read by scan, until yield returns false.
func EachRow[T any](
	ctx context.Context, from Querier, scan func(*sql.Rows) (T, error), yield func(T) bool, statement string, args ...any,
) error {
	rows, err := from.QueryContext(ctx, statement, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		found, err := scan(rows)
		if err != nil {
			return err
		}
		if !yield(found) {
			return nil
		}
	}
	return rows.Err()
}

// SelectIDs returns the single column that a statement selects.
func SelectIDs(ctx context.Context, tx *sql.Tx, statement string, args ...any) (ids []int64, err error) {
	err = EachRow(ctx, tx, func(rows *sql.Rows) (id int64, err error) {
		err = rows.Scan(&id)
		return id, err
	}, func(id int64) bool {
		ids = append(ids, id)
		return true
	}, statement, args...)
	return ids, err
}

// SelectTexts returns the single column that a statement selects.
func (db *conn) SelectTexts(ctx context.Context, statement string) (texts []string, err error) {
	rows, err := db.engine.Read.QueryContext(ctx, statement)
	if err != nil {
		return nil, db.Translate(err)
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return nil, db.Translate(err)
		}
		texts = append(texts, text)
	}
	return texts, db.Translate(rows.Err())
}

// List returns ids separated by commas.
func List(ids []int64) string {
	return strings.Trim(strings.Join(strings.Fields(fmt.Sprint(ids)), ","), "[]")
}

// IsMissing reports whether nothing was found.
func IsMissing(err error) bool { return errors.Is(err, sql.ErrNoRows) }

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
