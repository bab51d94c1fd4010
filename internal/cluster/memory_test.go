package cluster_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/internal/cluster"
)

// memory is a store of leases and duties that counts its calls. It uses the test's clock.
type memory struct {
	mu       sync.Mutex
	until    map[string]time.Time // of gateways
	duties   map[string]grant
	released chan struct{}

	renewals, claims, claimed int  // calls, calls, duties granted
	fails                     bool // to take duties
}

type grant struct {
	gateway string
	epoch   int64
}

func newMemory() *memory {
	return &memory{until: map[string]time.Time{}, duties: map[string]grant{}, released: make(chan struct{})}
}

func (m *memory) notify() {
	close(m.released)
	m.released = make(chan struct{})
}

func (m *memory) alive(id string) bool { return time.Now().Before(m.until[id]) }

func (m *memory) Released() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.released
}

func (m *memory) Join(_ context.Context, g cluster.Gateway, lease time.Duration) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.until[g.ID] = time.Now().Add(lease)
	m.notify()
	return nil
}

func (m *memory) Renew(_ context.Context, id string, lease time.Duration) (live []string, next time.Duration, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.renewals++
	if !m.alive(id) {
		return nil, 0, cluster.ErrLapsed
	}
	m.until[id] = time.Now().Add(lease)
	for other, until := range m.until {
		if !m.alive(other) {
			continue
		}
		live = append(live, other)
		if left := time.Until(until); other != id && (next == 0 || left < next) {
			next = left
		}
	}
	slices.Sort(live)
	return live, next, nil
}

func (m *memory) Claim(_ context.Context, id string, duties []string) (map[string]int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.claims++
	granted := map[string]int64{}
	for _, name := range duties {
		if d := m.duties[name]; d.gateway == id || !m.alive(d.gateway) {
			m.duties[name] = grant{id, d.epoch + 1}
			granted[name] = d.epoch + 1
		}
	}
	m.claimed += len(granted)
	return granted, nil
}

func (m *memory) Held(_ context.Context, id string) (names []string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, d := range m.duties {
		if d.gateway == id {
			names = append(names, name)
		}
	}
	return names, nil
}

func (m *memory) Release(_ context.Context, id string, duties []string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fails {
		return errors.New("the store fails")
	}
	for _, name := range duties {
		if d := m.duties[name]; d.gateway == id {
			m.duties[name] = grant{"", d.epoch}
		}
	}
	m.notify()
	return nil
}

func (m *memory) Leave(_ context.Context, id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.until, id)
	m.notify()
	return nil
}

func (m *memory) Gateways(context.Context) ([]cluster.Gateway, error) { return nil, nil }

// simulated is a gateway in a test's virtual time.
type simulated struct {
	*cluster.Member
	*memory
	cut   atomic.Bool  // calls of the store fail
	stall atomic.Bool  // calls take effect, but do not return
	slow  atomic.Int64 // how long a renewal takes
	stop  func()
}

func (s *simulated) Renew(ctx context.Context, id string, lease time.Duration) ([]string, time.Duration, error) {
	if s.cut.Load() {
		return nil, 0, context.DeadlineExceeded
	}
	live, next, err := s.memory.Renew(ctx, id, lease)
	if s.stall.Load() {
		<-ctx.Done()
		return nil, 0, ctx.Err()
	}
	select {
	case <-time.After(time.Duration(s.slow.Load())):
	case <-ctx.Done():
		return nil, 0, ctx.Err()
	}
	return live, next, err
}

func (s *simulated) Leave(ctx context.Context, id string) error {
	if s.cut.Load() {
		return context.DeadlineExceeded
	}
	return s.memory.Leave(ctx, id)
}

// simulate starts a gateway on the store.
func simulate(t *testing.T, store *memory, wanted func() []string) *simulated {
	g := &simulated{memory: store}
	g.Member = cluster.New(g, slog.New(slog.DiscardHandler), "simulated", wanted)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = g.Run(ctx) }()
	g.stop = func() { cancel(); <-done }
	t.Cleanup(g.stop)
	return g
}

// TestDutiesOfALeaseThatWasNearlyOverAreTakenAgain: a renewal took too long for the gateway to trust it, but the lease is valid.
func TestDutiesOfALeaseThatWasNearlyOverAreTakenAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := simulate(t, newMemory(), func() []string { return duties })
		has := func() bool { _, ok := g.Epoch(duties[0]); return ok }
		time.Sleep(time.Second)
		if !has() {
			t.Fatal("it has no duties")
		}
		g.stall.Store(true)
		time.Sleep(cluster.LeaseTime)
		if has() {
			t.Error("it trusts a lease whose renewal nobody confirmed")
		}
		g.stall.Store(false)
		time.Sleep(cluster.LeaseTime)
		if !has() {
			t.Error("it never takes its duties again")
		}
	})
}

// TestDutiesThatCouldNotBeGivenBackAreLater: otherwise no gateway would ever have them.
func TestDutiesThatCouldNotBeGivenBackAreLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemory()
		wanted := func() []string { return duties }
		all := []*simulated{simulate(t, store, wanted)}
		time.Sleep(time.Second)
		store.mu.Lock()
		store.fails = true
		store.mu.Unlock()
		all = append(all, simulate(t, store, wanted))
		time.Sleep(2 * cluster.LeaseTime)
		store.mu.Lock()
		store.fails = false
		store.mu.Unlock()
		time.Sleep(2 * time.Second)
		for _, duty := range duties {
			_, one := all[0].Epoch(duty)
			if _, other := all[1].Epoch(duty); one == other {
				t.Fatalf("%s: one has it: %v, the other: %v", duty, one, other)
			}
		}
	})
}

// TestASlowDatabaseCostsNoHandOver: a renewal may take nearly two seconds, as on a busy disk.
func TestASlowDatabaseCostsNoHandOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemory()
		wanted := func() []string { return duties }
		one, other := simulate(t, store, wanted), simulate(t, store, wanted)
		time.Sleep(2 * time.Second)
		store.mu.Lock()
		store.claims = 0
		store.mu.Unlock()
		for range 5 {
			one.slow.Store(int64(1900 * time.Millisecond))
			other.slow.Store(int64(1900 * time.Millisecond))
			time.Sleep(time.Second)
			one.slow.Store(0)
			other.slow.Store(0)
			for range 40 {
				time.Sleep(100 * time.Millisecond)
				for _, duty := range duties {
					_, here := one.Epoch(duty)
					if _, there := other.Epoch(duty); here == there {
						t.Fatalf("%s: one has it: %v, the other: %v", duty, here, there)
					}
				}
			}
		}
		store.mu.Lock()
		defer store.mu.Unlock()
		if store.claims > 0 {
			t.Errorf("%d claims", store.claims)
		}
	})
}

// TestADeadGatewayIsMissedWhenItsLeaseEnds, not at the next regular renewal.
func TestADeadGatewayIsMissedWhenItsLeaseEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemory()
		wanted := func() []string { return duties }
		one, other := simulate(t, store, wanted), simulate(t, store, wanted)
		for _, after := range []time.Duration{0, 130 * time.Millisecond, 260 * time.Millisecond, 390 * time.Millisecond} {
			time.Sleep(2*time.Second + after)
			other.cut.Store(true)
			store.mu.Lock()
			ends := store.until[other.ID()]
			store.mu.Unlock()
			time.Sleep(time.Until(ends) + 20*time.Millisecond)
			synctest.Wait()
			for _, duty := range duties {
				if _, ok := one.Epoch(duty); !ok {
					t.Fatalf("nobody has the %s after the lease has ended", duty)
				}
			}
			other.cut.Store(false)
			time.Sleep(2 * time.Second)
		}
	})
}
