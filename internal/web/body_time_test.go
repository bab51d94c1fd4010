package web

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/internal/waittest"
)

// send sends a request on a new connection, and returns its answer.
func send(t *testing.T, l waittest.Listener, request string) (net.Conn, *http.Response) {
	t.Helper()
	client, server := net.Pipe()
	l <- server
	go func() { _, _ = io.WriteString(client, request) }()
	response, err := http.ReadResponse(bufio.NewReader(client), nil)
	if err != nil {
		t.Fatal(err)
	}
	return client, response
}

func TestABodyThatNeverComesIsCutOffAndOneThatCameMayBeWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := func(w http.ResponseWriter, r *http.Request) error {
			if err := DecodeJSON(w, r, MaxBody).Err(); err != nil {
				return err
			}
			select { // as a heartbeat waits
			case <-time.After(4 * BodyTime):
				w.WriteHeader(http.StatusOK)
			case <-r.Context().Done():
				t.Error("the request ended while it waited for news")
			}
			return nil
		}
		server := &http.Server{Handler: LimitBodyTime(Errors{}.Handler(Plain, answer))}
		listener := make(waittest.Listener)
		go func() { _ = server.Serve(listener) }()
		headers := "POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n"
		for body, want := range map[string]struct {
			status int
			took   time.Duration
		}{"{}": {http.StatusOK, 4 * BodyTime}, "{": {http.StatusBadRequest, BodyTime}} {
			began := time.Now()
			_, response := send(t, listener, headers+body)
			if took := time.Since(began); response.StatusCode != want.status || took != want.took {
				t.Errorf("body %q: %d after %v, want %d after %v", body, response.StatusCode, took, want.status, want.took)
			}
		}
		close(listener)
		_ = server.Shutdown(context.Background())
	})
}

// TestWhatARefusedRequestStillSendsIsCutOff: net/http reads some of an unread body, but not forever.
func TestWhatARefusedRequestStillSendsIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refuse := func(w http.ResponseWriter, r *http.Request) {
			Plain(w, http.StatusMethodNotAllowed, "method not allowed")
		}
		decode := func(w http.ResponseWriter, r *http.Request) error {
			return DecodeJSON(w, r, MaxBody).Err()
		}
		for name, c := range map[string]struct {
			handler    http.Handler
			sent, want int
			took       time.Duration
		}{
			"a body that nobody reads": {http.HandlerFunc(refuse), 1, http.StatusMethodNotAllowed, BodyTime},
			"one that is too large":    {Errors{}.Handler(Plain, decode), MaxBody + 1, http.StatusRequestEntityTooLarge, 0},
		} {
			server := &http.Server{Handler: LimitBodyTime(c.handler)}
			listener := make(waittest.Listener)
			go func() { _ = server.Serve(listener) }()
			began := time.Now()
			headers := fmt.Sprintf("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", c.sent+1)
			client, response := send(t, listener, headers+strings.Repeat(" ", c.sent))
			if took := time.Since(began); response.StatusCode != c.want || took != c.took {
				t.Errorf("%s: %d after %v, want %d after %v", name, response.StatusCode, took, c.want, c.took)
			}
			_, _ = io.Copy(io.Discard, client) // until the server closes it
			if took := time.Since(began); took > BodyTime+time.Second {
				t.Errorf("%s: cut off after %v, want %v", name, took, BodyTime)
			}
			close(listener)
			_ = server.Shutdown(context.Background())
		}
	})
}
