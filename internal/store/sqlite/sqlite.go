// Package sqlite keeps the gateway's database in one file. It has what differs from other engines; see package store.
package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"modernc.org/sqlite"

	"switchyard/internal/domain"
	"switchyard/internal/files"
	"switchyard/internal/store"
)

const FileName = "switchyard.db"

// DB is the gateway's database. Writes share one connection, so that writers queue in this process instead of getting
// SQLITE_BUSY. Reads have other connections and never wait for a writer (WAL).
type DB struct {
	*store.Tables
	dir      string
	opened   os.FileInfo // of the file
	check    func() error
	write    *sql.DB
	read     *sql.DB
	searches *sql.DB // for slow reads, so that others never wait for them
	log      *sql.DB // for Checkpoints: read connections cannot do it, and no write should wait for it

	identifying sync.Mutex
	identity    string // "" until it was asked for
}

// readers is the number of connections for reading; further reads queue.
const readers = 4

const searchers = 2

// Open opens the database in directory dir, creates it if there is none, and brings its schema up to date. Its files,
// and any directory that Open creates, are readable only by their owner, regardless of the umask. A file that SQLite
// cannot read is an error that names it, and is not changed.
func Open(ctx context.Context, dir string) (*DB, error) {
	db, err := OpenUnchecked(ctx, dir)
	if err != nil {
		return nil, err
	}
	if err := db.Check(); err != nil {
		return nil, errors.Join(Failed(dir, err), db.Close())
	}
	return db, nil
}

// OpenUnchecked is Open without Check, which takes longer than everything else and which the caller must call later.
func OpenUnchecked(ctx context.Context, dir string) (*DB, error) {
	if err := files.MakePrivateDir(dir); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, FileName)
	if err := restrict(path); err != nil {
		return nil, err
	}
	opened, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	db := &DB{dir: dir, opened: opened}
	db.check = sync.OnceValue(func() error { return check(db.read, path) })
	db.read, db.searches = openReadOnly(path, readers), openReadOnly(path, searchers)
	db.write = openConnections(path, writerOptions, 1, db.check)
	db.log = openConnections(path, writerOptions, 1, db.check)
	db.log.SetMaxIdleConns(0)
	db.Tables = store.NewTables(store.Engine{
		Write: db.write, Turn: make(chan struct{}, 1), Read: db.read, Searches: db.searches, SearchLimit: searchLimit,
		Dialect: dialect, Code: code, Transact: db.transact, Present: db.present,
	})
	if err := db.migrate(ctx); err != nil {
		return nil, errors.Join(Failed(dir, err), db.release())
	}
	return db, nil
}

// Values that tests change.
var (
	sqliteDriver driver.Driver = &sqlite.Driver{}
	searchLimit                = store.SearchLimit
)

var writerOptions = fmt.Sprintf("_txlock=immediate&_pragma=journal_mode(WAL)&_pragma=busy_timeout(5000)&"+
	"_pragma=synchronous(FULL)&_pragma=foreign_keys(1)&_pragma=wal_autocheckpoint(%d)&_pragma=journal_size_limit(%d)",
	unattendedLog, maxLog)

// restrict creates the database file or repairs its mode. SQLite gives -wal and -shm the same mode.
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

// Size returns the size of the database on disk, and how much of it is free for reuse, in bytes.
func (db *DB) Size(ctx context.Context) (size, free int64, err error) {
	var pages, freePages, pageSize int64
	err = db.read.QueryRowContext(ctx, `SELECT page_count, freelist_count, page_size
		FROM pragma_page_count(), pragma_freelist_count(), pragma_page_size()`).Scan(&pages, &freePages, &pageSize)
	return pages * pageSize, freePages * pageSize, db.Translate(err)
}

// Close closes the database, which must not be used afterwards.
func (db *DB) Close() error {
	_ = db.write.Ping() // the last connection moves the write-ahead log into the database, which readers cannot
	return db.release()
}

// release closes the connections. Unlike Close it does not change a database that has not been written.
func (db *DB) release() error {
	return errors.Join(db.log.Close(), db.searches.Close(), db.read.Close(), db.write.Close())
}

// present returns an error if the database's file was removed or replaced: SQLite would go on with a file that no
// longer has a name.
func (db *DB) present() error {
	switch now, err := os.Stat(filepath.Join(db.dir, FileName)); {
	case err != nil:
		return domain.WrapError(domain.Unavailable, err,
			"the database's file is gone: stop the gateway and restore a backup")
	case !os.SameFile(now, db.opened):
		return domain.Errorf(domain.Unavailable, "the database's file was replaced while the gateway ran: restart it")
	}
	return nil
}

func (db *DB) Ping(ctx context.Context) error {
	if err := db.present(); err != nil {
		return err
	}
	return db.Tables.Ping(ctx)
}

// transact is Transact of store.Engine. Only the transaction watches ctx: that takes a goroutine, which each statement
// would otherwise need. It holds the write lock from the beginning, so ids increase in the order of commits.
func (db *DB) transact(
	ctx context.Context, read []store.Statement, write func() ([]store.Statement, []domain.Topic, error),
) error {
	return db.Tx(ctx, nil, func(ctx context.Context, tx *sql.Tx) error {
		ctx = context.WithoutCancel(ctx)
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
		var err error
		if s.Each == nil {
			err = store.Exec(ctx, tx, s.SQL, s.Args...)
		} else {
			err = store.Each(ctx, tx, s.Each, s.SQL, s.Args...)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
