package postgres

import (
	"context"
	"maps"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"switchyard/internal/domain"
	"switchyard/internal/store"
)

// poolOptions are how the connections of a pool differ from those of others.
type poolOptions struct {
	most    int32         // how many there are at most
	silence time.Duration // how long the server may say nothing
	locks   time.Duration // how long it waits for a lock
	mode    pgx.QueryExecMode
}

// The pools of a gateway: twelve connections, with the one that listens. PostgreSQL's default allows 100 for everybody.
//
// Where statements are few, preparing them is worth while: appending takes less than half the time. In the other pools they
// differ from one call to the next.
var (
	tablePool  = poolOptions{5, silence, lockLimit, pgx.QueryExecModeCacheDescribe}
	appendPool = poolOptions{2, appendSilence, lockLimit, pgx.QueryExecModeCacheStatement}
	searchPool = poolOptions{2, searchSilence, lockLimit, pgx.QueryExecModeCacheDescribe}
	leasePool  = poolOptions{2, silence, leaseLockLimit, pgx.QueryExecModeCacheStatement}
)

const (
	// silence is how long a server may say nothing while we wait for its answer. One that is frozen, or cut off, would
	// block its callers for ever.
	silence       = 2500 * time.Millisecond
	appendSilence = 5 * time.Second // thousands of records are stored in one piece
	searchSilence = store.SearchLimit + time.Second
	// lockLimit is how long the server waits for a lock. Gateways that append hold it for some 10 ms each: whoever waits longer
	// waits for one that was frozen while it held it. Claims of duties wait less, since the lease must be renewed meanwhile.
	lockLimit, leaseLockLimit = 2 * time.Second, time.Second
	// acquireLimit is how long to wait for a connection.
	acquireLimit = 3 * time.Second
	// writeLimit is how long a transaction that appends or removes events may take.
	writeLimit = 10 * time.Second
)

// parameters are set on each connection unless its URL sets them. A PgBouncer has to be told to ignore them.
var parameters = map[string]string{
	"application_name": "switchyard",
	// A gateway that is frozen within a transaction would block all others.
	"idle_in_transaction_session_timeout": "2000",
	"jit":                                 "off", // compiling takes longer than any of our statements
	// The server gives up a gateway that is cut off.
	"tcp_user_timeout":        "5000",
	"tcp_keepalives_idle":     "5",
	"tcp_keepalives_interval": "2",
	"tcp_keepalives_count":    "3",
}

// tracer is nil but in tests.
var tracer pgx.QueryTracer

func newPool(ctx context.Context, url string, o poolOptions) (*pgxpool.Pool, error) {
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

// choosesMode reports whether an address says how statements are sent, as that of a PgBouncer may have to.
func choosesMode(url string) bool { return strings.Contains(url, "default_query_exec_mode") }

// errTransactionPooling is the error of a PgBouncer under which prepared statements fail now and then, those of leases among them.
var errTransactionPooling error = domain.Errorf(domain.Internal,
	"PgBouncer pools transactions: make it pool sessions, or add default_query_exec_mode=cache_describe to the address")

// checkPooling returns an error where two connections turn out to be the same one of the server, unless the address is made for that.
func checkPooling(ctx context.Context, pool *pgxpool.Pool, url string) error {
	if choosesMode(url) {
		return nil
	}
	var processes [2]int
	for i := range processes {
		c, err := pool.Acquire(ctx)
		if err != nil {
			return err
		}
		defer c.Release()
		if err := c.QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&processes[i]); err != nil {
			return err
		}
	}
	if processes[0] == processes[1] {
		return errTransactionPooling
	}
	return nil
}

// configure sets what connections of ours have in common.
func configure(config *pgx.ConnConfig, o poolOptions) {
	config.ConnectTimeout = acquireLimit
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
