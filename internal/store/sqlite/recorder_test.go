package sqlite

import (
	"context"
	"database/sql/driver"
	"sync"

	"modernc.org/sqlite"
)

// recorder is a driver that records statements.
type recorder struct {
	driver     driver.Driver
	mu         sync.Mutex
	statements map[string]bool
}

// Record makes databases that are opened from now on record their statements, until the returned function is called, which returns
// them. It must not run in parallel with other tests.
func Record() (statements func() map[string]bool) {
	recording.driver = &sqlite.Driver{}
	recording.mu.Lock()
	defer recording.mu.Unlock()
	recording.statements = map[string]bool{}
	sqliteDriver = &recording
	return func() map[string]bool {
		recording.mu.Lock()
		defer recording.mu.Unlock()
		sqliteDriver = recording.driver
		return recording.statements
	}
}

var recording recorder

func (r *recorder) note(statement string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.statements[statement] = true
}

func (r *recorder) Open(name string) (driver.Conn, error) {
	conn, err := r.driver.Open(name)
	if err != nil {
		return nil, err
	}
	return recordedConn{conn.(sqliteConn), r}, nil
}

type recordedConn struct {
	sqliteConn
	recorder *recorder
}

func (c recordedConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	c.recorder.note(query)
	return c.sqliteConn.PrepareContext(ctx, query)
}
