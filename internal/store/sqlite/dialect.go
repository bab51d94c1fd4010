package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"switchyard/internal/domain"
	"switchyard/internal/store"
)

var dialect = store.Dialect{
	Rows: func(n int) string { return fmt.Sprintf("json_each($%d) AS each", n) },
	// Without statistics SQLite may use the index of types.
	ProjectEvents: "events INDEXED BY events_of_project",
	CursorURL:     "url",
	Containing: func(table string, n int, texts ...string) (statement string, args []any) {
		words := map[string]string{"stories": "story_words", "texts": "text_words"}[table]
		var terms []string
		for _, text := range texts {
			terms = append(terms, `"`+strings.ReplaceAll(text, `"`, `""`)+`"`)
		}
		return fmt.Sprintf("SELECT rowid AS id FROM %s WHERE %[1]s MATCH $%d", words, n), []any{strings.Join(terms, " ")}
	},
}

// transact is Transact of store.Engine. Only the transaction watches ctx: that takes a goroutine, which each statement
// would need as well. It holds the write lock from its beginning, so ids increase in the order of commits.
func (db *DB) transact(
	ctx context.Context, read []store.Statement, write func() ([]store.Statement, []domain.Topic, error),
) error {
	return db.Tx(ctx, nil, func(tx *sql.Tx) error {
		ctx := context.WithoutCancel(ctx)
		if err := run(ctx, tx, read); err != nil {
			return err
		}
		statements, _, err := write()
		if err != nil {
			return err
		}
		return run(ctx, tx, statements)
	})
}

func run(ctx context.Context, tx *sql.Tx, statements []store.Statement) error {
	for _, s := range statements {
		if s.Each == nil {
			if _, err := tx.ExecContext(ctx, s.SQL, s.Args...); err != nil {
				return err
			}
			continue
		}
		rows, err := tx.QueryContext(ctx, s.SQL, s.Args...)
		if err != nil {
			return err
		}
		for err == nil && rows.Next() {
			err = s.Each(rows)
		}
		if err := errors.Join(err, rows.Err(), rows.Close()); err != nil {
			return err
		}
	}
	return nil
}

// code translates an error of SQLite: Conflict for a row that already exists, Internal for others. The message names
// the reason if people can do something about it.
func code(err error) *domain.Error {
	var driver *sqlite.Error
	if !errors.As(err, &driver) {
		return nil
	}
	switch driver.Code() {
	case sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY:
		return domain.WrapError(domain.Conflict, err, "already exists")
	}
	message := "the store failed"
	switch driver.Code() & 0xff {
	case sqlite3.SQLITE_FULL:
		message += ": the disk is full"
	case sqlite3.SQLITE_READONLY:
		message += ": the database is read-only"
	case sqlite3.SQLITE_IOERR:
		message += ": the disk has an error"
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		message += ": the database is damaged"
	}
	return domain.WrapError(domain.Internal, err, message)
}
