// Package postgres keeps the database that several gateways share. It has what differs from other engines, and the
// coordination between gateways; see package store.
package postgres

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
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
	// Refused, unless nil, is called when a write is refused because another gateway leads. Set it before the first write.
	Refused  func(token int64)
	pool     *pgxpool.Pool
	leader   *pgxpool.Pool // for the lease and for appending events
	tables   *sql.DB       // over pool
	slow     *sql.DB       // over pool, for at most maxSearches searches at once
	listener *listener
	indexed  bool // whether there is an index for parts of words
	clock    clock.Clock
}

// Open connects to the database at url and brings its schema up to date, one gateway after another. It returns
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
	var now time.Time
	asked := time.Now()
	if err := db.pool.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&now); err != nil {
		return nil, openFailure(err)
	}
	db.clock.Read(asked, time.Now(), now)
	db.tables, db.slow = openTables(db.pool), openTables(db.pool)
	db.slow.SetMaxOpenConns(maxSearches)
	db.listener = &listener{pool: db.pool}
	db.Tables = store.NewTables(store.Engine{
		Write: db.tables, Read: db.tables, Searches: db.slow, SearchLimit: store.SearchLimit,
		Snapshot: sql.LevelRepeatableRead, Dialect: dialect, Code: code, Transact: db.transact, Notify: notify,
		Refused: func(token int64) {
			if db.Refused != nil {
				db.Refused(token)
			}
		},
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
		db.pool.Reset() // a new connection may not be read-only: that is decided when it begins
		db.leader.Reset()
	}
	return db.Translate(err)
}

// Run receives other gateways' notifications until ctx ends.
func (db *DB) Run(ctx context.Context) error { return db.listener.run(ctx) }

// Changed returns a channel that is closed when a gateway has changed the topic, or when a notification may have been
// missed. Call it before reading the topic. There are no notifications unless Run is running, nor behind a PgBouncer in
// transaction mode.
func (db *DB) Changed(topic domain.Topic) <-chan struct{} { return db.listener.Changed(string(topic)) }

// Clock returns the clock of the database. It is read with each renewal of a lease.
func (db *DB) Clock() *clock.Clock { return &db.clock }

func (db *DB) Lease() *Lease { return &Lease{db.leader, &db.clock, db.listener, db.unblock} }

// versions are statements that select, for each topic, a value that differs after each change. A row's xmin is the
// transaction that wrote it.
var versions = map[domain.Topic]string{
	domain.TopicProjects: `SELECT concat_ws(' ', count(*), sum(xmin::text::bigint),
		(SELECT concat_ws(' ', xmin, value) FROM state WHERE key = 'active_project')) FROM projects`,
	domain.TopicAccess: `SELECT concat_ws(' ',
		(SELECT concat_ws(' ', count(*), sum(xmin::text::bigint)) FROM sessions), '/', count(*),
		sum(xmin::text::bigint)) FROM named_tokens`,
	domain.TopicAgents: `SELECT concat_ws(' ', count(*), sum(xmin::text::bigint)) FROM agents`,
	domain.TopicVisits: `SELECT concat_ws(' ', MAX(changed), (SELECT MAX(changed) FROM histories))
		FROM stage_visits`,
	domain.TopicAcknowledgements: `SELECT concat_ws(' ', count(*), sum(xmin::text::bigint)) FROM acknowledgements`,
	domain.TopicClaims:           `SELECT concat_ws(' ', count(*), sum(xmin::text::bigint)) FROM claims`,
	domain.TopicQuestions: `SELECT concat_ws(' ', max(ended_at_ms), max(id), (SELECT concat_ws(' ', count(*),
		sum(xmin::text::bigint)) FROM questions WHERE ended_at_ms = 0)) FROM questions`,
	domain.TopicUsage:    "SELECT concat_ws(' ', max(changed)) FROM usage_sums",
	domain.TopicSessions: `SELECT concat_ws(' ', count(*), sum(xmin::text::bigint)) FROM agent_sessions`,
	domain.TopicTargets:  `SELECT concat_ws(' ', count(*), sum(revision), sum(enabled)) FROM targets`,
}

// Version returns a value that differs after each change of a topic.
func (db *DB) Version(ctx context.Context, topic domain.Topic) (version string, err error) {
	err = db.tables.QueryRowContext(ctx, versions[topic]).Scan(&version)
	return version, db.Translate(err)
}

const identityKey = "identity"

// origin identifies what is new in a restored database: the cluster, the database, its tables and its timeline.
const origin = `SELECT concat_ws('/', system_identifier,
	(SELECT oid FROM pg_database WHERE datname = current_database()), 'stream'::regclass::oid,
	left(pg_walfile_name(pg_current_wal_lsn()), 8)) FROM pg_control_system()`

// Identity returns a random text that belongs to this database. A new one has a different text, and so has one that was
// restored, or taken over by a standby, which may lack the last events.
func (db *DB) Identity(ctx context.Context) (id string, err error) {
	err = db.Tx(ctx, nil, func(ctx context.Context, tx *sql.Tx) error {
		var now, stored string
		if err := tx.QueryRowContext(ctx, origin).Scan(&now); err != nil {
			return err
		}
		// If several gateways find none, one of them decides.
		const locked = "INSERT INTO state (key, value) VALUES ($1, '') ON CONFLICT (key) DO UPDATE SET value = state.value" +
			" RETURNING value"
		if err := tx.QueryRowContext(ctx, locked, identityKey).Scan(&stored); err != nil {
			return err
		}
		var from string
		if id, from, _ = strings.Cut(stored, " "); id != "" && from == now {
			return nil
		}
		id = rand.Text()
		return store.Exec(ctx, tx, store.PutState, identityKey, id+" "+now)
	})
	return id, err
}

const (
	diskFull = "53100"
	denied   = "42501" // insufficient_privilege
)

// takeSpace temporarily takes 10 MB of disk space.
const takeSpace = `CREATE TEMPORARY TABLE switchyard_space ON COMMIT DROP
	AS SELECT repeat('x', 1000) FROM generate_series(1, 10000)`

// TryWrite makes a harmless write, which updates WriteFailure. After a full disk it is a large one, since a few rows
// fit even on a full disk.
func (db *DB) TryWrite(ctx context.Context) error {
	if _, failure := db.WriteFailure(); !errors.Is(failure, store.ErrNoSpace) {
		return db.Tables.TryWrite(ctx)
	}
	_, err := db.pool.Exec(ctx, takeSpace)
	var refused *pgconn.PgError
	if err == nil || errors.As(err, &refused) && refused.Code == denied { // this role may not create temporary tables
		db.HasSpace()
		return nil
	}
	return db.Wrote(err)
}

// Size returns the size of the database on disk, in bytes. free is always 0, since it is unknown.
func (db *DB) Size(ctx context.Context) (size, free int64, err error) {
	err = db.tables.QueryRowContext(ctx, "SELECT pg_database_size(current_database())").Scan(&size)
	return size, 0, db.Translate(err)
}
