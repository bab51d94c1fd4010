package handlers

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// pipeListener is a listener of connections in memory, as fake time needs them.
type pipeListener chan net.Conn

func (l pipeListener) Accept() (net.Conn, error) {
	conn, ok := <-l
	if !ok {
		return nil, net.ErrClosed
	}
	return conn, nil
}
func (l pipeListener) Close() error   { return nil }
func (l pipeListener) Addr() net.Addr { return &net.UnixAddr{} }

func (l pipeListener) send(t *testing.T, request string) *http.Response {
	t.Helper()
	client, server := net.Pipe()
	l <- server
	go func() { _, _ = io.WriteString(client, request) }()
	response, err := http.ReadResponse(bufio.NewReader(client), nil)
	if err != nil {
		t.Fatal(err)
	}
	return response
}

func TestABodyThatNeverComesIsCutOffAndOneThatCameMayBeWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := func(w http.ResponseWriter, r *http.Request) error {
			if _, err := decodeBody(w, r); err != nil {
				return err
			}
			select { // as a heartbeat waits
			case <-time.After(4 * bodyTime):
				w.WriteHeader(http.StatusOK)
			case <-r.Context().Done():
				t.Error("the request ended while it waited for news")
			}
			return nil
		}
		server := &http.Server{Handler: limitBodyTime(errorWriter{}.api(plainForm, answer))}
		listener := make(pipeListener)
		go func() { _ = server.Serve(listener) }()
		headers := "POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n"
		for body, want := range map[string]struct {
			status int
			took   time.Duration
		}{"{}": {http.StatusOK, 4 * bodyTime}, "{": {http.StatusBadRequest, bodyTime}} {
			began := time.Now()
			response := listener.send(t, headers+body)
			if took := time.Since(began); response.StatusCode != want.status || took != want.took {
				t.Errorf("body %q: %d after %v, want %d after %v", body, response.StatusCode, took, want.status, want.took)
			}
		}
		close(listener)
		_ = server.Shutdown(context.Background())
	})
}

func TestAProjectServerCutsOffBodiesThatNobodyReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &http.Server{Handler: fullProject().Handler()}
		listener := make(pipeListener)
		go func() { _ = server.Serve(listener) }()
		began := time.Now()
		response := listener.send(t, "POST /api/events HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{")
		if took := time.Since(began); response.StatusCode != http.StatusMethodNotAllowed || took > bodyTime {
			t.Errorf("%d after %v, want 405 after %v", response.StatusCode, took, bodyTime)
		}
		close(listener)
		_ = server.Shutdown(context.Background())
	})
}
