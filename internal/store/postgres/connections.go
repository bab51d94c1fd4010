package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"maps"
	"net"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"switchyard/internal/domain"
	"switchyard/internal/store"
)

type poolOptions struct {
	most      int32         // the maximum number of connections
	statement time.Duration // how long the server works on a statement
	mode      pgx.QueryExecMode
	noPing    bool // idle connections are used without a round trip to check them
}

// The pools of a gateway: twelve connections, including the one that listens. PostgreSQL allows 100 in all by default.
//
// The leader's pool is for the lease and for appending events, which wait for nothing else. Preparing statements pays
// off there, where there are few: appending takes less than half the time. In the other pool statements differ from one
// call to the next.
var (
	leaderPool = poolOptions{
		most: 3, statement: writeLimit, mode: pgx.QueryExecModeCacheStatement, noPing: true,
	}
	tablePool = poolOptions{
		most: 8, statement: store.SearchLimit + time.Second, mode: pgx.QueryExecModeCacheDescribe,
	}
)

const (
	// maxSearches is how many connections searches use at once, so that nothing else waits for them.
	maxSearches = 2
	// acquireLimit is how long to wait for a connection.
	acquireLimit = 3 * time.Second
	// callLimit is the time limit of a statement whose context has none. A server that is frozen or cut off would
	// otherwise block its callers forever.
	callLimit = 5 * time.Second
	// writeLimit is how long a transaction that appends or removes events may take.
	writeLimit = 5 * time.Second
)

// parameters are set on each connection unless its URL sets them. PgBouncer must be configured to ignore them.
var parameters = map[string]string{
	"application_name": "switchyard",
	// A gateway that is frozen in a transaction would block all others.
	"idle_in_transaction_session_timeout": "2000",
	"lock_timeout":                        "2000",
	"jit":                                 "off", // compiling takes longer than any of our statements
	// The server drops a gateway that has been cut off.
	"tcp_user_timeout":        "5000",
	"tcp_keepalives_idle":     "5",
	"tcp_keepalives_interval": "2",
	"tcp_keepalives_count":    "3",
}

// newPool connects to the database at url. seen, unless nil, is called with each statement.
func newPool(
	ctx context.Context, url string, o poolOptions, seen func(statement string, args []any),
) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	config.MaxConns = o.most
	config.ConnConfig.Tracer = deadlines{seen}
	if !choosesMode(url) {
		config.ConnConfig.DefaultQueryExecMode = o.mode
	}
	configure(config.ConnConfig, o)
	config.AfterConnect = func(_ context.Context, c *pgx.Conn) error {
		registerTypes(c.TypeMap())
		return nil
	}
	if o.noPing {
		config.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return false }
	}
	return pgxpool.NewWithConfig(ctx, config)
}

// choosesMode reports whether an address chooses how statements are sent, as may be needed for PgBouncer.
func choosesMode(url string) bool { return strings.Contains(url, "default_query_exec_mode") }

// errTransactionPooling is the error for a PgBouncer in transaction mode, in which prepared statements, including those
// for leases, fail now and then.
var errTransactionPooling error = domain.Errorf(domain.Internal,
	"PgBouncer pools transactions: make it pool sessions, or add default_query_exec_mode=cache_describe to the address")

// poolingRounds is how often checkPooling asks each of two connections for its process: on a busy PgBouncer they rarely
// share one, but soon have another.
const poolingRounds = 5

// checkPooling returns an error if connections change or share processes of the server, unless the address allows for
// that.
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
	wanted["statement_timeout"] = strconv.FormatInt(o.statement.Milliseconds(), 10)
	for name, value := range wanted {
		if _, ok := config.RuntimeParams[name]; !ok {
			config.RuntimeParams[name] = value
		}
	}
	keepAlive := net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: 2 * time.Second, Count: 3}
	config.DialFunc = (&net.Dialer{KeepAliveConfig: keepAlive}).DialContext
}

// CheckAddress returns an error unless address is valid for a database. The error does not quote it, since it may hold
// a password.
func CheckAddress(address string) error {
	_, err := pgxpool.ParseConfig(address)
	if err == nil {
		return nil
	}
	text := err.Error() // "cannot parse `…`: why"
	if i := strings.LastIndex(text, "`: "); i >= 0 {
		text = text[i+len("`: "):]
	}
	return errors.New(text)
}

func openTables(pool *pgxpool.Pool) *sql.DB {
	busy := func() bool { return pool.Stat().AcquiredConns() == pool.Config().MaxConns }
	db := sql.OpenDB(connector{stdlib.GetPoolConnector(pool), &breaker{busy: busy}})
	db.SetMaxIdleConns(0) // pool keeps idle connections
	return db
}

// connector waits for a connection for a limited time, and not at all while the database does not respond.
type connector struct {
	driver.Connector
	breaker *breaker
}

func (c connector) Connect(ctx context.Context) (found driver.Conn, err error) {
	err = c.breaker.do(ctx, func() error {
		limited, cancel := context.WithTimeout(ctx, acquireLimit)
		defer cancel()
		found, err = c.Connector.Connect(limited)
		return err
	})
	if err != nil {
		return nil, err
	}
	return conn{found.(*stdlib.Conn)}, nil
}

// conn converts texts to the form that PostgreSQL can store.
type conn struct{ *stdlib.Conn }

func (c conn) CheckNamedValue(v *driver.NamedValue) error {
	if value := reflect.ValueOf(v.Value); value.Kind() == reflect.String {
		v.Value = store.Text(value.String())
	}
	return nil
}

// OpenReadOnly opens the database at address for a reader that changes nothing, not even the schema.
func OpenReadOnly(address string) (*sql.DB, error) {
	config, err := pgx.ParseConfig(address)
	if err != nil {
		return nil, CheckAddress(address)
	}
	config.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	config.RuntimeParams["default_transaction_read_only"] = "on"
	return stdlib.OpenDB(*config), nil
}
