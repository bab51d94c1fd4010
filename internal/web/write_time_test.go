package web

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/internal/waittest"
)

func TestAClientThatDoesNotReadItsAnswerIsLetGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		took := make(chan time.Duration, 1)
		server := &http.Server{Handler: LimitWriteTime(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/wait":
				time.Sleep(2 * WriteTime)
				return
			case "/upload":
				_, _ = io.Copy(w, r.Body)
				return
			}
			began := time.Now()
			_, _ = w.Write(make([]byte, 1<<20))
			took <- time.Since(began)
		}))}
		listener := make(waittest.Listener)
		go func() { _ = server.Serve(listener) }()
		client, served := net.Pipe()
		listener <- served
		reader := bufio.NewReader(client)
		for _, path := range []string{"/wait", "/wait"} { // waiting does not count
			_, _ = io.WriteString(client, "GET "+path+" HTTP/1.1\r\nHost: localhost\r\n\r\n")
			if response, err := http.ReadResponse(reader, nil); err != nil || response.StatusCode != http.StatusOK {
				t.Fatalf("%s: %v, %v", path, response, err)
			}
		}
		time.Sleep(2 * WriteTime) // nor does the pause since the last answer
		_, _ = io.WriteString(client, "POST /upload HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n")
		if response, err := http.ReadResponse(reader, nil); err != nil || response.StatusCode != http.StatusContinue {
			t.Fatalf("%v, %v", response, err)
		}
		_, _ = io.WriteString(client, "body")
		response, err := http.ReadResponse(reader, nil)
		if err != nil || response.StatusCode != http.StatusOK {
			t.Fatalf("%v, %v", response, err)
		}
		_, _ = io.Copy(io.Discard, response.Body)
		_, _ = io.WriteString(client, "GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n")
		if got := <-took; got != WriteTime {
			t.Errorf("let go after %v, want %v", got, WriteTime)
		}
		synctest.Wait()
		if _, err := io.Copy(io.Discard, client); err != nil {
			t.Errorf("the connection is not closed: %v", err)
		}
		close(listener)
		_ = server.Shutdown(context.Background())
	})
}
