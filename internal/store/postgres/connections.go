package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"maps"
	"net"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"switchyard/internal/store"
)

// Connections of a gateway, twelve with the one that listens. PostgreSQL's default allows 100 for everybody.
const (
	connections       = 5
	appendConnections = 2
	searchConnections = 2
	leaseConnections  = 2
)

const (
	// silence is how long a server may say nothing while we wait for its answer. One that is frozen, or cut off, would
	// block its callers for ever.
	silence       = 2500 * time.Millisecond
	appendSilence = 5 * time.Second // thousands of records are stored in one piece
	searchSilence = store.SearchLimit + time.Second
	// lockMargin is how much earlier the server gives up waiting for a lock.
	lockMargin = 500 * time.Millisecond
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
	"client_connection_check_interval":    "1000",
	"jit":                                 "off", // compiling takes longer than any of our statements
	// The server gives up a gateway that is cut off.
	"tcp_user_timeout":        "5000",
	"tcp_keepalives_idle":     "5",
	"tcp_keepalives_interval": "2",
	"tcp_keepalives_count":    "3",
}

// tracer is nil but in tests.
var tracer pgx.QueryTracer

func newPool(ctx context.Context, url string, most int32, silence time.Duration) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	config.MaxConns = most
	config.ConnConfig.Tracer = tracer
	configure(config.ConnConfig, url, silence)
	return pgxpool.NewWithConfig(ctx, config)
}

// configure sets what connections of ours have in common.
func configure(config *pgx.ConnConfig, url string, silence time.Duration) {
	config.ConnectTimeout = acquireLimit
	if !strings.Contains(url, "default_query_exec_mode") {
		// No named statement outlives its use: a PgBouncer may give each transaction another connection of the server.
		config.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	}
	wanted := maps.Clone(parameters)
	wanted["lock_timeout"] = strconv.FormatInt((silence - lockMargin).Milliseconds(), 10)
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
		return &limitedConn{Conn: conn, limit: silence}, nil
	}
}

var errSilent = errors.New("the database does not answer")

// limitedConn is a connection on which reading and writing take so long at most. Longer ones break it.
type limitedConn struct {
	net.Conn
	limit time.Duration

	mu    sync.Mutex
	read  time.Time // the deadlines that the driver wants
	write time.Time
}

func (c *limitedConn) SetDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.read, c.write = t, t
	return c.Conn.SetDeadline(t)
}

func (c *limitedConn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.read = t
	return c.Conn.SetReadDeadline(t)
}

func (c *limitedConn) SetWriteDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.write = t
	return c.Conn.SetWriteDeadline(t)
}

func (c *limitedConn) Read(b []byte) (int, error) {
	return c.limited(&c.read, c.Conn.SetReadDeadline, c.Conn.Read, b)
}

func (c *limitedConn) Write(b []byte) (int, error) {
	return c.limited(&c.write, c.Conn.SetWriteDeadline, c.Conn.Write, b)
}

func (c *limitedConn) limited(wanted *time.Time, set func(time.Time) error, do func([]byte) (int, error), b []byte) (int, error) {
	c.mu.Lock()
	if ours := time.Now().Add(c.limit); wanted.IsZero() || ours.Before(*wanted) {
		_ = set(ours) // on a closed connection, which do reports
	}
	c.mu.Unlock()
	n, err := do(b)
	var failure net.Error
	if errors.As(err, &failure) && failure.Timeout() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if wanted.IsZero() || time.Now().Before(*wanted) {
			err = fmt.Errorf("%w for %s", errSilent, c.limit) // no time-out: the driver would go on using the connection
		}
	}
	return n, err
}

// openTables is the pool for package sql.
func openTables(pool *pgxpool.Pool) *sql.DB {
	db := sql.OpenDB(connector{stdlib.GetPoolConnector(pool)})
	db.SetMaxIdleConns(0) // the pool keeps them
	return db
}

// connector waits for a connection for a limited time.
type connector struct{ driver.Connector }

func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, acquireLimit)
	defer cancel()
	found, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return conn{found.(*stdlib.Conn)}, nil
}

// conn sends of texts what PostgreSQL can store.
type conn struct{ *stdlib.Conn }

func (c conn) CheckNamedValue(v *driver.NamedValue) error {
	if value := reflect.ValueOf(v.Value); value.Kind() == reflect.String {
		v.Value = Text(value.String())
	}
	return nil
}
