package web

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// boundedServer takes so many connections. Its handler knows callers at /known and holds what is asked for below /hold.
func boundedServer(t *testing.T, limit int) *httptest.Server {
	bound := NewConnections(limit)
	end := make(chan struct{})
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/known") {
			KnownCaller(r.Context())
		}
		if strings.HasPrefix(r.URL.Path, "/hold") {
			_ = http.NewResponseController(w).Flush() // the caller sees that it is served
			select {
			case <-end:
			case <-r.Context().Done():
			}
		}
	}))
	server.Config.ConnContext, server.Config.ConnState = bound.Context, bound.Track
	server.Start()
	t.Cleanup(func() { close(end); server.Close() })
	return server
}

type boundedClient struct {
	net.Conn
	from *bufio.Reader
}

// connect opens a connection and, unless path is "", sends a request and reads the head of its answer.
func connect(t *testing.T, server *httptest.Server, path string) boundedClient {
	t.Helper()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	client := boundedClient{conn, bufio.NewReader(conn)}
	if path != "" && !client.ask(path) {
		t.Fatalf("%s is not answered", path)
	}
	return client
}

func (c boundedClient) ask(path string) bool {
	_, _ = fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path)
	response, err := http.ReadResponse(c.from, nil)
	return err == nil && response.StatusCode == http.StatusOK
}

// wantClosed waits until the server has closed the connection.
func (c boundedClient) wantClosed(t *testing.T, what string) {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.Copy(io.Discard, c.from); err != nil && !strings.Contains(err.Error(), "reset") && err != io.ErrUnexpectedEOF {
		t.Errorf("%s is still open: %v", what, err)
	}
}

func TestIdleStrangersMakeRoom(t *testing.T) {
	server := boundedServer(t, 4)
	known := connect(t, server, "/known")
	served := connect(t, server, "/hold")
	first, second := connect(t, server, ""), connect(t, server, "/")
	third := connect(t, server, "/known") // one too many
	first.wantClosed(t, "the stranger that waited longest")
	fourth := connect(t, server, "/hold/known")
	second.wantClosed(t, "the other stranger")
	connect(t, server, "/hold/known")
	served.wantClosed(t, "the stranger that is served")
	connect(t, server, "/hold/known")
	known.wantClosed(t, "the known caller that was idle longest")
	if !third.ask("/hold/known") {
		t.Error("a known caller was closed in spite of the others")
	}
	connect(t, server, "").wantClosed(t, "a stranger, while all are at work for known callers")
	_ = fourth
}

func TestManyStrangersShutNobodyOut(t *testing.T) {
	server := boundedServer(t, 20)
	known := connect(t, server, "/known")
	for range 100 {
		connect(t, server, "")
	}
	if !known.ask("/known") {
		t.Error("a known caller's connection was closed")
	}
	connect(t, server, "/known")
}
