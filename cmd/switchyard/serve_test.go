package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/internal/waittest"
)

func TestLocalhostIsBothLoopbackAddressesOnOnePort(t *testing.T) {
	listeners, err := listen(slog.New(slog.DiscardHandler), "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	port := portOf(listeners[0])
	var got []string
	for _, listener := range listeners {
		defer listener.Close()
		got = append(got, listener.Addr().String())
	}
	if want := fmt.Sprintf("127.0.0.1:%d [::1]:%d", port, port); strings.Join(got, " ") != want {
		t.Errorf("listening on %q, want %q", got, want)
	}
	if url := baseURL("localhost:0", listeners); url != fmt.Sprintf("http://localhost:%d", port) {
		t.Errorf("baseURL = %s", url)
	}
}

func TestLocalhostFailsWhenEitherAddressIsTaken(t *testing.T) {
	for _, taken := range []string{"127.0.0.1:0", "[::1]:0", "[::]:0"} {
		other, err := net.Listen("tcp", taken)
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		listeners, err := listen(slog.New(slog.DiscardHandler), fmt.Sprintf("localhost:%d", portOf(other)))
		if err == nil {
			t.Errorf("with %s taken, listening on %v", taken, listeners)
		}
	}
}

func TestOtherAddresses(t *testing.T) {
	for address, url := range map[string]string{"127.0.0.1:0": "http://127.0.0.1:%d", "[::1]:0": "http://[::1]:%d", "0.0.0.0:0": "http://localhost:%d", ":0": "http://localhost:%d"} {
		listeners, err := listen(slog.New(slog.DiscardHandler), address)
		if err != nil || len(listeners) != 1 {
			t.Fatalf("%s: %v, %v", address, listeners, err)
		}
		listeners[0].Close()
		if got, want := baseURL(address, listeners), fmt.Sprintf(url, portOf(listeners[0])); got != want {
			t.Errorf("%s: baseURL = %s, want %s", address, got, want)
		}
	}
}

func TestAZoneIsEscapedInURLs(t *testing.T) {
	if got := localURL("[fe80::1%eth0]:3000"); got != "http://[fe80::1%25eth0]:3000" {
		t.Errorf("got %s", got)
	}
}

// server runs serve with handler and returns its address, and a function that stops it and returns how long that took.
func server(t *testing.T, handler http.HandlerFunc) (address string, stop func() time.Duration) {
	t.Helper()
	listeners, err := listen(slog.New(slog.DiscardHandler), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- serve(ctx, slog.New(slog.DiscardHandler), listeners, handler) }()
	return listeners[0].Addr().String(), func() time.Duration {
		start := time.Now()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		return time.Since(start)
	}
}

func TestAStoppingServerAnswersWhatIsUnderWay(t *testing.T) {
	began, finish := make(chan bool), make(chan bool)
	address, stop := server(t, func(w http.ResponseWriter, r *http.Request) {
		close(began)
		<-finish
		if r.Context().Err() != nil {
			t.Error("the request's context ended with the server")
		}
		w.Write([]byte("done"))
	})
	body := make(chan string)
	go func() {
		response, err := http.Get("http://" + address)
		if err != nil {
			body <- err.Error()
			return
		}
		defer response.Body.Close()
		var b bytes.Buffer
		b.ReadFrom(response.Body)
		body <- b.String()
	}()
	<-began
	stopped := make(chan time.Duration)
	go func() { stopped <- stop() }()
	for { // until it takes no new connections
		conn, err := net.Dial("tcp", address)
		if err != nil {
			break
		}
		conn.Close()
	}
	close(finish)
	if got := <-body; got != "done" {
		t.Errorf("the request under way got %q", got)
	}
	<-stopped
}

// closingListener ends with Close.
type closingListener struct{ waittest.Listener }

func (l closingListener) Close() error {
	close(l.Listener)
	return nil
}

// TestAStopIsCountedFromWhenTheProcessWasAsked: ending an agent first counts towards the same ten seconds.
func TestAStopIsCountedFromWhenTheProcessWasAsked(t *testing.T) {
	for _, before := range []time.Duration{0, 7 * time.Second, drainLimit} {
		synctest.Test(t, func(t *testing.T) {
			listener := closingListener{make(waittest.Listener)}
			ctx, stop := context.WithCancelCause(t.Context())
			began, ended := make(chan bool), make(chan error)
			go func() {
				ended <- serve(ctx, slog.New(slog.DiscardHandler), []net.Listener{listener}, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
					close(began)
					<-r.Context().Done()
				}))
			}()
			client, conn := net.Pipe()
			listener.Listener <- conn
			fmt.Fprint(client, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
			<-began
			asked := time.Now()
			time.Sleep(before)
			stop(stoppedAt{asked})
			if err := <-ended; err != nil {
				t.Error(err)
			}
			if took := time.Since(asked); took != drainLimit {
				t.Errorf("asked %v before, it ended after %v, want %v", before, took, drainLimit)
			}
			client.Close()
		})
	}
}

func TestHeadersAreLimited(t *testing.T) {
	address, stop := server(t, func(w http.ResponseWriter, r *http.Request) {})
	defer stop()
	request, _ := http.NewRequest("GET", "http://"+address, nil)
	request.Header.Set("X", strings.Repeat("x", 2*maxHeader))
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("status %d, want 431", response.StatusCode)
	}
}

func TestNoRequestPassesTheHandlerBy(t *testing.T) {
	address, stop := server(t, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusForbidden) })
	defer stop()
	for _, start := range []string{"GET /", "OPTIONS /", "OPTIONS *", "CONNECT evil.test:80", "GET http://evil.test/"} {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: evil.test\r\nConnection: close\r\n\r\n", start)
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || response.StatusCode != http.StatusForbidden {
			t.Errorf("%s: %v, %v", start, response, err)
		}
	}
}
