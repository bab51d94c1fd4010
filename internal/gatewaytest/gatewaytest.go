// Package gatewaytest builds gateways for tests: the real router over the real service and a real database.
package gatewaytest

import (
	"context"
	"log/slog"
	"net"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"switchyard/handlers"
	"switchyard/internal/notify"
	"switchyard/internal/service"
	"switchyard/internal/store/sqlite"
	"switchyard/internal/store/storetest"
	"switchyard/internal/web"
)

// Gateway is a gateway with access to its parts. It is closed at the end of the test.
type Gateway struct {
	*service.Service
	Store *sqlite.DB
	HTTP  handlers.Gateway
}

// New builds a gateway from o and h. The defaults are a new database, a discarded log, a bot that is off, an agent
// timeout of 45 s, join tokens that are valid for an hour, and a session key.
func New(t testing.TB, o service.Options, h handlers.Gateway) *Gateway {
	t.Helper()
	db, ok := o.Store.(*sqlite.DB)
	if !ok {
		var err error
		if db, err = sqlite.Open(context.Background(), storetest.Dir(t)); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		o.Store = db
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Bot == nil {
		o.Bot = &Bot{}
	}
	if o.Messenger == nil {
		o.Messenger = notify.New(notify.Options{
			Guard: notify.Guard{Private: true, Loopback: true}, Push: notify.Push{Keys: db.PushKeys},
		})
	}
	if o.AgentTimeout == 0 {
		o.AgentTimeout = 45 * time.Second
	}
	if o.JoinTokenTTL == 0 {
		o.JoinTokenTTL = time.Hour
	}
	svc, err := service.New(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var loops sync.WaitGroup
	loops.Go(func() { _ = svc.Visits.Run(ctx) })
	loops.Go(func() { _ = svc.Alerts.Run(ctx) })
	loops.Go(func() { _ = svc.Claims.Run(ctx) })
	t.Cleanup(func() { cancel(); loops.Wait() })
	h.Service, h.Log = svc, o.Log
	if h.SessionKey == nil {
		h.SessionKey = []byte("key")
	}
	return &Gateway{svc, db, h}
}

// Serve serves the gateway over a socket until the test ends.
func (g *Gateway) Serve(t testing.TB) *httptest.Server {
	t.Helper()
	server, _ := g.ServeUntil(t)
	return server
}

// ServeUntil is Serve. stop begins the server's shutdown, in which held requests are answered.
func (g *Gateway) ServeUntil(t testing.TB) (_ *httptest.Server, stop func()) {
	t.Helper()
	stopping, stop := context.WithCancel(context.Background())
	server := httptest.NewUnstartedServer(g.HTTP.Handler())
	server.Config.BaseContext = func(net.Listener) context.Context {
		return web.WithStopping(context.Background(), stopping)
	}
	server.Start()
	t.Cleanup(func() {
		stop()
		server.Close()
	})
	return server, stop
}
