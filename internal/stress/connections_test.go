//go:build stress

package stress

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

const (
	// idleStrangers is a number of connections that would shut everybody else out if they were not closed.
	idleStrangers = 241
	// deafReaders request large responses and never read them.
	deafReaders = 200
	// deafTime is how soon they must be disconnected: a response may take 30 s.
	deafTime = 50 * time.Second
)

func connect(t *testing.T, g *server) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(g.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// TestIdleStrangersShutNobodyOut: clients with the token are served despite connections that send nothing, and despite those that
// stay open after one request.
func TestIdleStrangersShutNobodyOut(t *testing.T) {
	g := guarded(t)
	for i := range idleStrangers {
		conn := connect(t, g)
		if i%2 == 0 {
			fmt.Fprintf(conn, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
		}
	}
	for range 20 {
		began := time.Now()
		if status, err := ask(t, g.url+"/api/gateway", rightToken); status != http.StatusOK || time.Since(began) > time.Second {
			t.Fatalf("status %d after %v: %v", status, time.Since(began), err)
		}
	}
}

// TestDeafReadersAreDropped: 200 connections request responses that they never read.
func TestDeafReadersAreDropped(t *testing.T) {
	g := guarded(t)
	before := g.files()
	for range deafReaders {
		conn := connect(t, g)
		_ = conn.(*net.TCPConn).SetReadBuffer(4 << 10)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		stop := context.AfterFunc(ctx, func() { conn.SetWriteDeadline(time.Now()) })
		request := "GET /api/openapi.json HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + rightToken + "\r\n\r\n"
		_, _ = io.WriteString(conn, strings.Repeat(request, 400)) // until the gateway reads no more
		stop()
		cancel()
	}
	if status, err := ask(t, g.url+"/api/gateway", rightToken); status != http.StatusOK {
		t.Errorf("status %d beside the deaf readers: %v", status, err)
	}
	if !until(deafTime, func() bool { return g.files() <= before+8 }) {
		t.Errorf("%d files are open, %d before", g.files(), before)
	}
}
