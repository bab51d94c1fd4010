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
type boundedServer struct {
	*httptest.Server
	idle chan struct{} // a connection is idle; one that was answered is so a moment after its client read the answer
}

func newBoundedServer(t *testing.T, limit int) boundedServer {
	bound := NewConnections(limit)
	end := make(chan struct{})
	server := boundedServer{idle: make(chan struct{}, 100)} // those held are idle at the end
	server.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
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
	server.Config.ConnContext = bound.Context
	server.Config.ConnState = func(conn net.Conn, state http.ConnState) {
		bound.Track(conn, state)
		if state == http.StateIdle {
			server.idle <- struct{}{}
		}
	}
	server.Start()
	t.Cleanup(func() { close(end); server.Close() })
	return server
}

type boundedClient struct {
	net.Conn
	from   *bufio.Reader
	server boundedServer
}

// connect opens a connection and, unless path is "", sends a request and reads the head of its answer.
func connect(t *testing.T, server boundedServer, path string) boundedClient {
	t.Helper()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	client := boundedClient{conn, bufio.NewReader(conn), server}
	if path != "" && !client.ask(path) {
		t.Fatalf("%s is not answered", path)
	}
	return client
}

// ask sends a request, reads the head of its answer and, unless the server holds it, waits until the connection is idle.
func (c boundedClient) ask(path string) bool {
	_, _ = fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path)
	response, err := http.ReadResponse(c.from, nil)
	if err == nil && !strings.HasPrefix(path, "/hold") {
		<-c.server.idle
	}
	return err == nil && response.StatusCode == http.StatusOK
}

// wantClosed waits until the server has closed the connection.
func (c boundedClient) wantClosed(t *testing.T, what string) {
	t.Helper()
	if _, err := io.Copy(io.Discard, c.from); err != nil && !strings.Contains(err.Error(), "reset") && err != io.ErrUnexpectedEOF {
		t.Errorf("%s is still open: %v", what, err)
	}
}

func TestIdleStrangersMakeRoom(t *testing.T) {
	server := newBoundedServer(t, 4)
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
	server := newBoundedServer(t, 20)
	known := connect(t, server, "/known")
	for range 100 {
		connect(t, server, "")
	}
	if !known.ask("/known") {
		t.Error("a known caller's connection was closed")
	}
	connect(t, server, "/known")
}
