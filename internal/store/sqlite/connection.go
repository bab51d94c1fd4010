package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"net/url"
)

// maxPrepared is how many statements a connection keeps prepared. Preparing a typical statement takes as long as
// running it (BenchmarkAddCalls).
const maxPrepared = 64

// openConnections opens at most that many connections to the database at path, each at its first use. Each first runs
// check, unless nil.
func openConnections(path, options string, most int, check func() error) *sql.DB {
	db := sql.OpenDB(connector{check, "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + options})
	db.SetMaxOpenConns(most)
	db.SetMaxIdleConns(most)
	return db
}

// openReadOnly opens the database at path for that many readers.
func openReadOnly(path string, readers int) *sql.DB {
	return openConnections(path, "mode=ro&_pragma=busy_timeout(5000)", readers, nil)
}

type connector struct {
	check func() error
	name  string
}

func (c connector) Driver() driver.Driver { return sqliteDriver }

func (c connector) Connect(context.Context) (driver.Conn, error) {
	if c.check != nil {
		if err := c.check(); err != nil {
			return nil, err
		}
	}
	conn, err := sqliteDriver.Open(c.name)
	if err != nil {
		return nil, err
	}
	return &connection{conn.(sqliteConn), map[string]driver.Stmt{}}, nil
}

// sqliteConn has the optional interfaces of package driver that SQLite's connections implement.
type sqliteConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

// connection keeps statements prepared. It is used by one caller at a time.
type connection struct {
	sqliteConn
	idle map[string]driver.Stmt // by their SQL
}

func (c *connection) take(ctx context.Context, query string) (driver.Stmt, error) {
	if s := c.idle[query]; s != nil {
		delete(c.idle, query)
		return s, nil
	}
	return c.PrepareContext(ctx, query)
}

func (c *connection) put(query string, s driver.Stmt) error {
	if c.idle[query] != nil { // it was in use twice
		return s.Close()
	}
	for other, s := range c.idle {
		if len(c.idle) < maxPrepared {
			break
		}
		delete(c.idle, other)
		_ = s.Close()
	}
	c.idle[query] = s
	return nil
}

func (c *connection) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	s, err := c.take(ctx, query)
	if err != nil {
		return nil, err
	}
	result, err := s.(driver.StmtExecContext).ExecContext(ctx, args)
	return result, errors.Join(err, c.put(query, s))
}

func (c *connection) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	s, err := c.take(ctx, query)
	if err != nil {
		return nil, err
	}
	rows, err := s.(driver.StmtQueryContext).QueryContext(ctx, args)
	if err != nil {
		return nil, errors.Join(err, c.put(query, s))
	}
	return &result{rows, func() error { return c.put(query, s) }}, nil
}

func (c *connection) Close() error {
	for _, s := range c.idle {
		_ = s.Close() // closing the connection does the same
	}
	return c.sqliteConn.Close()
}

// result puts its statement back once it has been read.
type result struct {
	driver.Rows
	put func() error
}

func (r *result) Close() error { return errors.Join(r.Rows.Close(), r.put()) }
