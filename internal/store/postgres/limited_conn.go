package postgres

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

var errSilent = errors.New("the database does not respond")

// limitedConn is a connection that fails when a read or write takes longer than its limit.
type limitedConn struct {
	net.Conn
	limit time.Duration

	mu    sync.Mutex
	read  time.Time // the deadlines set by the driver
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
		_ = set(ours) // fails on a closed connection, which do reports
	}
	c.mu.Unlock()
	n, err := do(b)
	var failure net.Error
	if errors.As(err, &failure) && failure.Timeout() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if wanted.IsZero() || time.Now().Before(*wanted) {
			err = fmt.Errorf("%w for %s", errSilent, c.limit) // not a timeout error, after which the driver would reuse the connection
		}
	}
	return n, err
}
