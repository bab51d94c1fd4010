package cluster_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"switchyard/internal/cluster"
	"switchyard/internal/pgtest"
	"switchyard/internal/store/postgres"
	"switchyard/internal/waittest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Run(m.Run)) }

// gateway is a member that a test can cut off from the database.
type gateway struct {
	*cluster.Member
	*postgres.Lease
	cut  atomic.Bool
	stop func()
}

func (g *gateway) Renew(ctx context.Context, self cluster.Gateway, ttl time.Duration) (cluster.Lease, []cluster.Gateway, error) {
	if g.cut.Load() {
		return cluster.Lease{}, nil, fmt.Errorf("cut off")
	}
	return g.Lease.Renew(ctx, self, ttl)
}

func (g *gateway) Leave(ctx context.Context, id string) error {
	if g.cut.Load() {
		return fmt.Errorf("cut off")
	}
	return g.Lease.Leave(context.WithoutCancel(ctx), id) // however long a busy machine takes
}

func start(t *testing.T, url, name string) *gateway {
	t.Helper()
	db, err := postgres.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	g := &gateway{Lease: db.Lease()}
	g.Member = cluster.New(g, slog.New(slog.DiscardHandler), name)
	ctx, cancel := context.WithCancel(context.Background())
	done, heard := make(chan struct{}), make(chan struct{})
	go func() { defer close(heard); _ = db.Run(ctx) }()
	go func() { defer close(done); _ = g.Run(ctx) }()
	g.stop = func() { cancel(); <-done; <-heard }
	t.Cleanup(g.stop)
	return g
}

// leader waits until one of the gateways leads, and returns it with its token. It fails the test if two lead.
func leader(t *testing.T, gateways ...*gateway) (found *gateway, token int64) {
	t.Helper()
	waittest.Until(t, "one leads", func() bool {
		found = nil
		for _, g := range gateways {
			now, leads := g.Token()
			if !leads {
				continue
			}
			if found != nil && found.Leads() {
				t.Fatal("two gateways lead")
			}
			found, token = g, now
		}
		return found != nil
	})
	return found, token
}

// TestOneGatewayLeads: whichever gateways come and go, one of them leads, each next one under a greater token.
func TestOneGatewayLeads(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	all := []*gateway{start(t, url, "one")}
	first, before := leader(t, all...)
	all = append(all, start(t, url, "two"), start(t, url, "three"))
	if still, token := leader(t, all...); still != first || token != before {
		t.Error("a gateway that joins takes over from one that leads")
	}

	began := time.Now()
	first.stop() // a clean stop releases the lease at once
	second, after := leader(t, all...)
	if took := time.Since(began); took > 2500*time.Millisecond { // after a kill it takes 3 s
		t.Errorf("taken over from a stopped gateway in %v", took)
	}
	if after <= before {
		t.Errorf("token %d follows %d", after, before)
	}
	live, leads, err := second.Gateways(t.Context())
	if err != nil || leads != second.ID() || slices.ContainsFunc(live, func(g cluster.Gateway) bool { return g.Name == "one" }) {
		t.Errorf("after a clean stop the live gateways are %v, led by %s, %v", live, leads, err)
	}

	began = time.Now()
	second.cut.Store(true)
	waittest.Until(t, "it no longer leads", func() bool { return !second.Leads() })
	third, last := leader(t, all...)
	t.Logf("taken over from a gateway that was cut off in %v", time.Since(began))
	if last <= after {
		t.Errorf("token %d follows %d", last, after)
	}
	second.cut.Store(false)
	if still, token := leader(t, all...); still != third || token != last {
		t.Error("a gateway that is back takes over from one that leads")
	}
}

// TestTheDatabasesClockIsSetBack: a gateway that was dead before is not live again, and a dead leader is replaced in
// time.
func TestTheDatabasesClockIsSetBack(t *testing.T) {
	t.Parallel()
	url := pgtest.WrongClock(t, time.Hour)
	all := []*gateway{start(t, url, "one")}
	first, before := leader(t, all...)
	all = append(all, start(t, url, "two"))
	first.cut.Store(true)
	waittest.Until(t, "it no longer leads", func() bool { return !first.Leads() })
	second, after := leader(t, all...)
	if after <= before {
		t.Errorf("token %d follows %d", after, before)
	}
	pgtest.SetClock(t, url, 0)
	third := start(t, url, "three")
	waittest.Until(t, "the live ones are listed", func() bool {
		live, leads, err := third.Gateways(t.Context())
		return err == nil && len(live) == 2 && leads == second.ID()
	})
	began := time.Now()
	pgtest.SetClock(t, url, -time.Hour)
	second.cut.Store(true)
	waittest.Until(t, "another one leads", third.Leads)
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("a dead leader is replaced after %v", took)
	}
}
