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

// memory is a store of leases and duties that counts what it is asked for. It goes by the clock of the test.
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

func (m *memory) Renew(_ context.Context, id string, lease time.Duration) (live []string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.renewals++
	if !m.alive(id) {
		return nil, cluster.ErrLapsed
	}
	m.until[id] = time.Now().Add(lease)
	for other := range m.until {
		if m.alive(other) {
			live = append(live, other)
		}
	}
	slices.Sort(live)
	return live, nil
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

func (m *memory) Keep(_ context.Context, id string, duties []string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fails {
		return errors.New("the store fails")
	}
	kept := map[string]bool{}
	for _, name := range duties {
		kept[name] = true
	}
	released := false
	for name, d := range m.duties {
		if d.gateway == id && !kept[name] {
			m.duties[name] = grant{"", d.epoch}
			released = true
		}
	}
	if released {
		m.notify()
	}
	return nil
}

func (m *memory) Leave(_ context.Context, id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, d := range m.duties {
		if d.gateway == id {
			m.duties[name] = grant{"", d.epoch}
		}
	}
	delete(m.until, id)
	m.notify()
	return nil
}

func (m *memory) Gateways(context.Context) ([]cluster.Gateway, error) { return nil, nil }

// simulated is a gateway in the time of a test.
type simulated struct {
	*cluster.Member
	*memory
	cut   atomic.Bool // reaches the store no longer
	stall atomic.Bool // what it asks of the store happens, but the answer does not come
	stop  func()
}

func (s *simulated) Renew(ctx context.Context, id string, lease time.Duration) ([]string, error) {
	if s.cut.Load() {
		return nil, context.DeadlineExceeded
	}
	live, err := s.memory.Renew(ctx, id, lease)
	if s.stall.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return live, err
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

// TestDutiesOfALeaseThatWasNearlyOverAreTakenAgain: the answer to a renewal came too late to trust it, but the lease holds.
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

// TestDutiesThatCouldNotBeGivenBackAreLater: otherwise nobody would ever have them.
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
