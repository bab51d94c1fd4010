// Package postgres keeps the database that several gateways share. It has what differs from other engines, and the
// coordination between gateways; see package store.
package postgres

import (
	"context"
	"database/sql"
	"errors"

	"github.com/jackc/pgx/v5/pgxpool"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
	"switchyard/internal/store"
)

// DB is the database that gateways share.
type DB struct {
	*store.Tables
	bot
	signIn
	pace
	fencing
	pool     *pgxpool.Pool
	leader   *pgxpool.Pool // for the lease and for appending events
	tables   *sql.DB       // over pool
	slow     *sql.DB       // over pool, for at most maxSearches searches at once
	listener *listener
	indexed  bool // whether there is an index for parts of words
	clock    clock.Clock
}

// Open connects to the database at url and brings its schema up to date, one gateway after the other. It returns
// Unavailable if the database cannot be reached at the moment.
func Open(ctx context.Context, url string) (*DB, error) { return open(ctx, url, nil) }

// open is Open with a function that is called with each statement; it may be nil.
func open(ctx context.Context, url string, seen func(statement string, args []any)) (_ *DB, err error) {
	db := &DB{}
	db.bot, db.signIn = bot{db}, signIn{db}
	defer func() {
		if err != nil {
			db.Close()
		}
	}()
	if db.pool, err = newPool(ctx, url, tablePool, seen); err != nil {
		return nil, err
	}
	if db.leader, err = newPool(ctx, url, leaderPool, seen); err != nil {
		return nil, err
	}
	if err := checkPooling(ctx, db.pool, url); err != nil {
		return nil, openFailure(err)
	}
	if err := migrate(ctx, db.pool); err != nil {
		return nil, openFailure(err)
	}
	if db.indexed, err = ensureIndexOfWords(ctx, db.pool); err != nil {
		return nil, openFailure(err)
	}
	if err := readClock(ctx, db.pool, &db.clock); err != nil {
		return nil, openFailure(err)
	}
	db.tables, db.slow = openTables(db.pool), openTables(db.pool)
	db.slow.SetMaxOpenConns(maxSearches)
	db.listener = newListener(db.pool)
	db.Tables = store.NewTables(store.Engine{
		Write: db.tables, Read: db.tables, Searches: db.slow, SearchLimit: store.SearchLimit,
		Snapshot: sql.LevelRepeatableRead, Dialect: dialect, Code: code, Transact: db.transact, Notify: notify,
		Refused: db.refuse,
	})
	return db, nil
}

// Close closes all connections. The database must not be used afterwards.
func (db *DB) Close() error {
	var err error
	for _, tables := range []*sql.DB{db.tables, db.slow} {
		if tables != nil {
			err = errors.Join(err, tables.Close())
		}
	}
	for _, pool := range []*pgxpool.Pool{db.pool, db.leader} {
		if pool != nil {
			pool.Close()
		}
	}
	return err
}

// SearchesUseIndex reports whether searches use an index. Without the extension pg_trgm they read all texts.
func (db *DB) SearchesUseIndex() bool { return db.indexed }

// Ping returns an error if the database does not respond. A read-only database counts as a failed write.
func (db *DB) Ping(ctx context.Context) error {
	var readOnly bool
	err := db.tables.QueryRowContext(ctx, "SELECT current_setting('transaction_read_only')::boolean").Scan(&readOnly)
	if err == nil && readOnly {
		_ = db.Wrote(domain.Errorf(domain.Unavailable, "the database is read-only"))
		db.pool.Reset() // a new connection may not be: that is decided when it begins
		db.leader.Reset()
	}
	return db.Translate(err)
}

// Run receives other gateways' notifications until ctx ends.
func (db *DB) Run(ctx context.Context) error { return db.listener.run(ctx) }

// Changed returns a channel that is closed when a gateway has changed the topic, or when a notification may have been
// missed. Call it before reading the topic. There are no notifications unless Run is running, nor behind a PgBouncer in
// transaction mode.
func (db *DB) Changed(topic domain.Topic) <-chan struct{} { return db.listener.changed(topic) }
