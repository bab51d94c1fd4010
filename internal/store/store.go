// Package store keeps the gateway's state in SQLite. It translates driver errors into domain errors and knows
// no rules: what may be stored is decided in package service.
//
// The SQL of its statements is text that PostgreSQL takes as well ($1 parameters, ON CONFLICT, RETURNING);
// only the schema is SQLite's own.
package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"switchyard/internal/domain"
	"switchyard/internal/files"
)

// FileName is the database's name in the data directory.
const FileName = "switchyard.db"

// DB is the gateway's database. Writes go through one connection, so that writers queue in this process
// instead of meeting SQLITE_BUSY; reads have connections of their own and never wait for a writer (WAL).
type DB struct {
	write    *sql.DB
	read     *sql.DB
	searches *sql.DB // for what may take long, so that other reads never wait for it
	// searchLimit is how long one may take.
	searchLimit time.Duration
	events      *eventWriter
	// upgrading is whether old_events or old_stories may hold something.
	upgrading atomic.Bool

	health health
}

// readers is the number of connections for reading; more than this many slow reads at once queue.
const readers = 4

// searchers is the number of connections for searching.
const searchers = 2

// Open opens the database in directory dir, makes it if there is none, and brings its schema up to date.
// Its files, and a directory that it makes, are readable by their owner only, whatever the umask. A file that SQLite
// cannot read is an error that names it, and is left as it is.
func Open(ctx context.Context, dir string) (*DB, error) {
	if err := files.MakePrivateDir(dir); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, FileName)
	if err := restrict(path); err != nil {
		return nil, err
	}
	if err := check(ctx, path); err != nil {
		return nil, fmt.Errorf("database %s: %w", path, err)
	}
	db := &DB{searchLimit: defaultSearchLimit}
	var err error
	if db.write, err = open(path, "_txlock=immediate"); err != nil {
		return nil, err
	}
	db.write.SetMaxOpenConns(1)
	if db.read, err = open(path, "_pragma=query_only(1)"); err != nil {
		db.write.Close()
		return nil, err
	}
	db.read.SetMaxOpenConns(readers)
	db.read.SetMaxIdleConns(readers)
	if db.searches, err = open(path, "_pragma=query_only(1)"); err != nil {
		return nil, errors.Join(err, db.read.Close(), db.write.Close())
	}
	db.searches.SetMaxOpenConns(searchers)
	if err := db.prepare(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("database %s: %w", path, err), db.Close())
	}
	return db, nil
}

// prepare brings the schema up to date.
func (db *DB) prepare(ctx context.Context) (err error) {
	if err := db.migrate(ctx); err != nil {
		return err
	}
	if err := db.findOld(ctx); err != nil {
		return err
	}
	db.events, err = newEventWriter(ctx, db.write)
	return err
}

// driverName is another one only in tests.
var driverName = "sqlite"

func open(path, option string) (*sql.DB, error) {
	if err := registerFold(); err != nil {
		return nil, err
	}
	dsn := "file:" + (&url.URL{Path: path}).EscapedPath() +
		"?_pragma=journal_mode(WAL)&_pragma=busy_timeout(5000)&_pragma=synchronous(FULL)&_pragma=foreign_keys(1)&" + option
	return sql.Open(driverName, dsn)
}

// restrict makes the database file, or repairs its mode. SQLite gives -wal and -shm the mode of the database.
func restrict(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	for _, name := range []string{path, path + "-wal", path + "-shm"} {
		if err := files.Restrict(name); err != nil {
			return err
		}
	}
	return nil
}

// Close closes the database. Nothing may use it afterwards.
func (db *DB) Close() error {
	return errors.Join(db.searches.Close(), db.read.Close(), db.write.Close())
}

// Ping reports whether the store answers.
func (db *DB) Ping(ctx context.Context) error {
	var one int
	return translate(db.read.QueryRowContext(ctx, "SELECT 1 FROM state WHERE key = $1 UNION ALL SELECT 1 LIMIT 1", "").Scan(&one))
}

// tx runs fn in one transaction: all of it is stored when tx returns nil, none of it otherwise.
func (db *DB) tx(ctx context.Context, fn func(*sql.Tx) error) (err error) {
	defer func() { db.health.note(err) }()
	tx, err := db.write.BeginTx(ctx, nil)
	if err != nil {
		return translate(err)
	}
	defer tx.Rollback() //nolint:errcheck // after Commit it does nothing
	if err := fn(tx); err != nil {
		return translate(err)
	}
	if err := addAudit(ctx, tx); err != nil {
		return translate(err)
	}
	return translate(tx.Commit())
}

// exec executes a statement that writes.
func (db *DB) exec(ctx context.Context, statement string, args ...any) (sql.Result, error) {
	if _, audited := domain.AuditOf(ctx); audited {
		return db.execAudited(ctx, statement, args...)
	}
	result, err := db.write.ExecContext(ctx, statement, args...)
	if err != nil {
		err = translate(err)
		db.health.note(err)
		return nil, err
	}
	if n, err := result.RowsAffected(); err == nil && n > 0 { // what changed nothing wrote nothing
		db.health.note(nil)
	}
	return result, nil
}

// translate gives driver errors their domain code: what is missing is NotFound, what exists already Conflict,
// the rest Internal with the cause kept for the log. A domain error and nil stay as they are.
func translate(err error) error {
	var known *domain.Error
	var driver *sqlite.Error
	switch {
	case err == nil, errors.As(err, &known), errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, sql.ErrNoRows):
		return domain.WrapError(domain.NotFound, err, "not found")
	case errors.As(err, &driver) && (driver.Code() == sqlite3.SQLITE_CONSTRAINT_UNIQUE || driver.Code() == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY):
		return domain.WrapError(domain.Conflict, err, "already exists")
	}
	return failure(err)
}
