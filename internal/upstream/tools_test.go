package upstream_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/upstream"
)

// pipes is a listener without sockets, so that time stands still in between.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	conn, ok := <-p
	if !ok {
		return nil, net.ErrClosed
	}
	return conn, nil
}

func (p pipes) Close() error { close(p); return nil }

func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p pipes) dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	p <- server
	return client, nil
}

func TestToolsHaveTimeOfTheirOwn(t *testing.T) {
	for _, c := range []struct {
		takes time.Duration
		ok    bool
	}{{55 * time.Second, true}, {65 * time.Second, false}} {
		synctest.Test(t, func(t *testing.T) {
			listener := make(pipes)
			server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var message struct {
					ID     int
					Method string
				}
				_ = json.NewDecoder(r.Body).Decode(&message)
				if message.Method == "tools/call" {
					time.Sleep(c.takes)
				}
				w.Header().Set("Content-Type", "application/json")
				fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%d,"result":{"protocolVersion":"2025-06-18"}}`, message.ID)
			})}
			go func() { _ = server.Serve(listener) }() // until it is closed
			client := upstream.NewClient(time.Second)
			client.ToolTimeout = time.Minute
			client.SetDial(listener.dial)
			_, err := client.CallTool(t.Context(), domain.Project{Name: "alpha", URL: "http://alpha"}, "t", nil, nil)
			if ok := err == nil; ok != c.ok {
				t.Errorf("a tool that takes %v: %v", c.takes, err)
			}
			client.Close()
			_ = server.Shutdown(t.Context())
		})
	}
}
