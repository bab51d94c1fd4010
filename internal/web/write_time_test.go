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
)

func TestAClientThatDoesNotReadItsAnswerIsLetGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		took := make(chan time.Duration, 1)
		server := &http.Server{Handler: LimitWriteTime(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/wait" {
				time.Sleep(2 * WriteTime)
				return
			}
			began := time.Now()
			_, _ = w.Write(make([]byte, 1<<20))
			took <- time.Since(began)
		}))}
		listener := make(pipeListener)
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
