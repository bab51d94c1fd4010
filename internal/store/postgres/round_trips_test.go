package postgres_test

import (
	"context"
	"net"
	"net/url"
	"sync/atomic"
	"testing"

	"switchyard/internal/domain"
	"switchyard/internal/pgtest"
)

// TestAnAppendTakesTwoRoundTrips, with its publishing, whether the events' stories and projects are new or known.
func TestAnAppendTakesTwoRoundTrips(t *testing.T) {
	t.Parallel()
	address, trips := countTrips(t, pgtest.Database(t))
	db := open(t, address)
	for n := range 4 {
		before := trips.Load()
		reads := []domain.FeedRead{read("alpha", 0, 2*n, 5), read([]string{"beta", "gamma"}[n%2], 0, n, 3)}
		appended, err := db.AppendEvents(t.Context(), reads)
		if err != nil || len(appended.Added) == 0 {
			t.Fatalf("added %v, %v", appended.Added, err)
		}
		if taken := trips.Load() - before; n > 0 && taken != 2 { // the first prepares statements
			t.Errorf("append %d took %d round trips", n, taken)
		}
	}
}

// TestFollowingTheStreamTakesOneRoundTrip, so that an event soon shows on other gateways.
func TestFollowingTheStreamTakesOneRoundTrip(t *testing.T) {
	t.Parallel()
	address, trips := countTrips(t, pgtest.Database(t))
	db := open(t, address)
	for n := range 3 {
		if _, err := db.AppendEvents(t.Context(), []domain.FeedRead{read("alpha", 0, n, 1)}); err != nil {
			t.Fatal(err)
		}
		before := trips.Load()
		page, err := db.Events(t.Context(), domain.EventQuery{After: int64(n), Limit: 1000})
		if err != nil || len(page.Events) != 1 {
			t.Fatalf("%v, %v", ids(page.Events), err)
		}
		if taken := trips.Load() - before; n > 0 && taken != 1 { // the first one connects, and describes the statement
			t.Errorf("read %d took %d round trips", n, taken)
		}
	}
}

// countTrips returns the address of a proxy for a database, and how often a client has begun to send after the database
// sent.
func countTrips(t *testing.T, address string) (proxy string, trips *atomic.Int64) {
	t.Helper()
	target, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	trips = &atomic.Int64{}
	ctx := context.WithoutCancel(t.Context())
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := (&net.Dialer{}).DialContext(ctx, "tcp", target.Host)
			if err != nil {
				client.Close()
				continue
			}
			var answered atomic.Bool
			answered.Store(true)
			go pass(client, server, func() {
				if answered.Swap(false) {
					trips.Add(1)
				}
			})
			go pass(server, client, func() { answered.Store(true) })
		}
	}()
	through := *target
	through.Host = listener.Addr().String()
	return through.String(), trips
}

// pass copies what one connection receives to another one, and calls each before each piece.
func pass(from, to net.Conn, each func()) {
	defer to.Close()
	defer from.Close()
	buffer := make([]byte, 1<<16)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			each()
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
