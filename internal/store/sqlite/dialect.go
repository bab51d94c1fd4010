package sqlite

import (
	"errors"
	"fmt"
	"path/filepath"
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
	case sqlite3.SQLITE_IOERR:
		message += ": the disk has an error"
	case sqlite3.SQLITE_READONLY:
		message += ": the database is read-only"
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		message += ": the database is damaged"
	}
	return domain.WrapError(domain.Internal, err, message)
}

// errDamaged is the cause of a failed check.
var errDamaged = errors.New("database disk image is malformed")

// Failed names the database in directory dir that could not be opened, and says what to do about it.
func Failed(dir string, err error) error {
	hint := ""
	code := 0
	if driver, ok := errors.AsType[*sqlite.Error](err); ok {
		code = driver.Code()
	}
	switch {
	case code&0xff == sqlite3.SQLITE_CORRUPT, code&0xff == sqlite3.SQLITE_NOTADB, errors.Is(err, errDamaged):
		hint = "; keep the file, and put a backup in its place"
	case code == sqlite3.SQLITE_IOERR_SHMSIZE:
		hint = "; the disk is full"
	}
	return fmt.Errorf("database %s: %w%s", filepath.Join(dir, FileName), err, hint)
}
