package upstream

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"
)

// plainConns sends requests over connections that mostly wait for an answer. Meanwhile a connection of http.Transport holds two
// goroutines and two buffers, more than everything else that a followed project costs (BenchmarkIdleFeeds: 23 KiB
// a feed instead of 10). It supports only plain HTTP/1.1, without a proxy.
type plainConns struct {
	dialer  *net.Dialer
	timeout time.Duration // how long an answer may take once it has begun
	keepFor time.Duration // how long an idle connection stays open
	most    int           // the most idle connections, 0 for any number

	mu      sync.Mutex
	idle    map[string]*plainConn // by host and port; at most one each
	closing *time.Timer           // closes connections that are idle for too long; nil while there are none
}

// newPlainConns returns plainConns that keep at most most idle connections, 0 for any number, for keepFor each.
func newPlainConns(timeout, keepFor time.Duration, most int) *plainConns {
	dialer := &net.Dialer{Control: allowAddress, KeepAlive: -1} // each request has a deadline, so TCP keep-alives are needless
	return &plainConns{dialer: dialer, timeout: timeout, keepFor: keepFor, most: most, idle: map[string]*plainConn{}}
}

// bound needs no timers: the connections have deadlines, and set another one when a held answer begins.
func (c *plainConns) bound(ctx context.Context, timeout, wait time.Duration) (bounded context.Context, begun, cancel func()) {
	return deadline{ctx, time.Now().Add(timeout + wait)}, func() {}, func() {}
}

// deadline is a context that has a deadline, but does not end at it: our own connections enforce it (BenchmarkFeedRead).
type deadline struct {
	context.Context
	at time.Time
}

func (d deadline) Deadline() (time.Time, bool) { return d.at, true }

func (d deadline) Err() error {
	if err := d.Context.Err(); err != nil || time.Now().Before(d.at) {
		return err
	}
	return context.DeadlineExceeded
}

// RoundTrip implements http.RoundTripper. The request's context must have a deadline.
func (c *plainConns) RoundTrip(request *http.Request) (*http.Response, error) {
	ctx, address := request.Context(), hostPort(request)
	if conn := c.take(address); conn != nil {
		response, err := conn.exchange(ctx, request)
		switch {
		case err == nil && response.StatusCode == http.StatusRequestTimeout: // probably sent before the request came
			response.Body.Close()
		case err == nil || conn.heard || ctx.Err() != nil:
			return response, err
		}
		// The server had closed it meanwhile.
	}
	conn, err := c.dial(ctx, address)
	if err != nil {
		return nil, err
	}
	return conn.exchange(ctx, request)
}

func hostPort(request *http.Request) string {
	if request.URL.Port() != "" {
		return request.URL.Host
	}
	return net.JoinHostPort(request.URL.Hostname(), "80")
}

func (c *plainConns) dial(ctx context.Context, address string) (*plainConn, error) {
	conn, err := c.dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return &plainConn{Conn: conn, pool: c, address: address}, nil
}

// take returns the idle connection to an address, nil if there is none.
func (c *plainConns) take(address string) *plainConn {
	c.mu.Lock()
	defer c.mu.Unlock()
	conn := c.idle[address]
	delete(c.idle, address)
	return conn
}

// keep takes back a reusable connection.
func (c *plainConns) keep(conn *plainConn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if other := c.idle[conn.address]; other != nil {
		c.drop(other)
	}
	for _, other := range c.idle {
		if c.most == 0 || len(c.idle) < c.most {
			break
		}
		c.drop(other)
	}
	conn.idleSince = time.Now()
	c.idle[conn.address] = conn
	if c.closing == nil {
		c.closing = time.AfterFunc(c.keepFor/4, c.closeIdle)
	}
}

// drop closes an idle connection. Callers hold mu.
func (c *plainConns) drop(conn *plainConn) {
	conn.Close()
	delete(c.idle, conn.address)
}

// closeIdle closes the connections that have not been used for keepFor.
func (c *plainConns) closeIdle() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.idle {
		if time.Since(conn.idleSince) >= c.keepFor {
			c.drop(conn)
		}
	}
	if c.closing = nil; len(c.idle) > 0 {
		c.closing = time.AfterFunc(c.keepFor/4, c.closeIdle)
	}
}

// CloseIdleConnections closes the connections that no request uses.
func (c *plainConns) CloseIdleConnections() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.idle {
		conn.Close()
	}
	clear(c.idle)
	if c.closing != nil {
		c.closing.Stop()
		c.closing = nil
	}
}
