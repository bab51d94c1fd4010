package postgres

import (
	"context"
	"maps"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"switchyard/internal/domain"
	"switchyard/internal/store"
)

// poolOptions are the options in which pools differ.
type poolOptions struct {
	most    int32         // the maximum number of connections
	silence time.Duration // how long the server may send nothing
	locks   time.Duration // how long the server waits for a lock
	mode    pgx.QueryExecMode
}

// The pools of a gateway: twelve connections, including the one that listens. PostgreSQL allows 100 in all by default.
//
// Preparing statements pays off if there are few: appending takes less than half the time. In the other pools statements differ
// from one call to the next.
var (
	tablePool  = poolOptions{5, silence, lockLimit, pgx.QueryExecModeCacheDescribe}
	appendPool = poolOptions{2, appendSilence, lockLimit, pgx.QueryExecModeCacheStatement}
	searchPool = poolOptions{2, searchSilence, lockLimit, pgx.QueryExecModeCacheDescribe}
	leasePool  = poolOptions{2, silence, leaseLockLimit, pgx.QueryExecModeCacheStatement}
)

const (
	// silence is how long a server may send nothing while we wait for its response. One that is frozen or cut off would
	// otherwise block its callers forever.
	silence       = 2500 * time.Millisecond
	appendSilence = 5 * time.Second // thousands of records are stored in one transaction
	searchSilence = store.SearchLimit + time.Second
	// lockLimit is how long the server waits for a lock. Gateways hold it for some 10 ms to append: if it takes longer, one was
	// frozen while holding it. Claims of duties wait less, since the lease must be renewed in the meantime.
	lockLimit, leaseLockLimit = 2 * time.Second, time.Second
	// acquireLimit is how long to wait for a connection.
	acquireLimit = 3 * time.Second
	// writeLimit is how long a transaction that appends or removes events may take.
	writeLimit = 10 * time.Second
)

// parameters are set on each connection unless its URL sets them. PgBouncer must be configured to ignore them.
var parameters = map[string]string{
	"application_name": "switchyard",
	// A gateway that is frozen in a transaction would block all others.
	"idle_in_transaction_session_timeout": "2000",
	"jit":                                 "off", // compiling takes longer than any of our statements
	// The server drops a gateway that has been cut off.
	"tcp_user_timeout":        "5000",
	"tcp_keepalives_idle":     "5",
	"tcp_keepalives_interval": "2",
	"tcp_keepalives_count":    "3",
}

// newPool connects to the database at url. tracer sees all statements; it may be nil.
func newPool(ctx context.Context, url string, o poolOptions, tracer pgx.QueryTracer) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	config.MaxConns = o.most
	config.ConnConfig.Tracer = tracer
	if !choosesMode(url) {
		config.ConnConfig.DefaultQueryExecMode = o.mode
	}
	configure(config.ConnConfig, o)
	config.AfterConnect = func(_ context.Context, c *pgx.Conn) error {
		registerTypes(c.TypeMap())
		return nil
	}
	return pgxpool.NewWithConfig(ctx, config)
}

// choosesMode reports whether an address chooses how statements are sent, as may be needed for PgBouncer.
func choosesMode(url string) bool { return strings.Contains(url, "default_query_exec_mode") }

// errTransactionPooling is the error for a PgBouncer in transaction mode, in which prepared statements, including those for leases,
// fail now and then.
var errTransactionPooling error = domain.Errorf(domain.Internal,
	"PgBouncer pools transactions: make it pool sessions, or add default_query_exec_mode=cache_describe to the address")

// poolingRounds is how often checkPooling asks each of two connections for its process: on a busy PgBouncer they rarely share one,
// but soon have another.
const poolingRounds = 5

// checkPooling returns an error if connections change or share processes of the server, unless the address allows for that.
func checkPooling(ctx context.Context, pool *pgxpool.Pool, url string) error {
	if choosesMode(url) {
		return nil
	}
	var connections [2]*pgxpool.Conn
	var processes [2]int
	for i := range connections {
		c, err := pool.Acquire(ctx)
		if err != nil {
			return err
		}
		defer c.Release()
		connections[i] = c
	}
	for range poolingRounds {
		for i, c := range connections {
			var process int
			if err := c.QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&process); err != nil {
				return err
			}
			if processes[i] != 0 && process != processes[i] || process == processes[1-i] {
				return errTransactionPooling
			}
			processes[i] = process
		}
	}
	return nil
}

// configure sets what all our connections have in common.
func configure(config *pgx.ConnConfig, o poolOptions) {
	config.ConnectTimeout = acquireLimit
	config.OnPgError = func(_ *pgconn.PgConn, err *pgconn.PgError) (keep bool) {
		return !strings.HasPrefix(err.SeverityUnlocalized, "FATAL") && err.Code != readOnly
	}
	wanted := maps.Clone(parameters)
	wanted["lock_timeout"] = strconv.FormatInt(o.locks.Milliseconds(), 10)
	for name, value := range wanted {
		if _, ok := config.RuntimeParams[name]; !ok {
			config.RuntimeParams[name] = value
		}
	}
	dialer := &net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: 2 * time.Second, Count: 3}}
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dialer.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &limitedConn{Conn: conn, limit: o.silence}, nil
	}
}
