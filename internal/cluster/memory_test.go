package cluster_test

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/internal/cluster"
)

// memory is a store of the lease. Its clock is the test's, plus an error.
type memory struct {
	mu       sync.Mutex
	lease    cluster.Lease
	live     map[string]time.Time
	gateways map[string]cluster.Gateway
	released chan struct{}
	wrong    time.Duration // by how much its clock is ahead
	grants   int
}

func newMemory() *memory {
	return &memory{live: map[string]time.Time{}, gateways: map[string]cluster.Gateway{}, released: make(chan struct{})}
}

func (m *memory) now() time.Time { return time.Now().Add(m.wrong) }

func (m *memory) setClock(wrong time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wrong = wrong
}

func (m *memory) notify() {
	close(m.released)
	m.released = make(chan struct{})
}

func (m *memory) Released() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.released
}

func (m *memory) Renew(_ context.Context, g cluster.Gateway, ttl time.Duration) (lease cluster.Lease, others []cluster.Gateway, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.live[g.ID], m.gateways[g.ID] = m.now().Add(ttl), g
	if m.lease.Holder == g.ID {
		m.lease.Until = m.now().Add(ttl)
	}
	for id, until := range m.live {
		if id != g.ID && m.now().Before(until) {
			others = append(others, m.gateways[id])
		}
	}
	lease = m.lease
	lease.Left = lease.Until.Sub(m.now())
	return lease, others, nil
}

func (m *memory) TakeOver(_ context.Context, id string, last cluster.Lease, ttl time.Duration) (token int64, granted bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.lease.Token != last.Token || !m.lease.Until.Equal(last.Until) {
		return 0, false, nil
	}
	m.grants++
	m.lease = cluster.Lease{Token: last.Token + 1, Holder: id, Until: m.now().Add(ttl)}
	m.notify()
	return m.lease.Token, true, nil
}

func (m *memory) Resign(_ context.Context, id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.lease.Holder == id {
		m.lease.Holder, m.lease.Until = "", m.now()
		m.notify()
	}
	return nil
}

func (m *memory) Leave(ctx context.Context, id string) error {
	m.mu.Lock()
	delete(m.live, id)
	m.mu.Unlock()
	return m.Resign(ctx, id)
}

func (m *memory) granted() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.grants
}

// simulated is a gateway in a test's virtual time.
type simulated struct {
	*cluster.Member
	*memory
	cut   atomic.Bool  // calls of the store fail
	stall atomic.Bool  // calls take effect, but do not return
	slow  atomic.Int64 // how long a renewal takes
	late  atomic.Int64 // how long a take-over takes to arrive; the caller gives it up earlier
	unfit atomic.Bool
	stop  func()
}

func (s *simulated) Renew(ctx context.Context, g cluster.Gateway, ttl time.Duration) (cluster.Lease, []cluster.Gateway, error) {
	if s.cut.Load() {
		return cluster.Lease{}, nil, context.DeadlineExceeded
	}
	lease, others, err := s.memory.Renew(ctx, g, ttl)
	if s.stall.Load() {
		<-ctx.Done()
		return lease, nil, ctx.Err()
	}
	select {
	case <-time.After(time.Duration(s.slow.Load())):
	case <-ctx.Done():
		return lease, nil, ctx.Err()
	}
	return lease, others, err
}

func (s *simulated) TakeOver(ctx context.Context, id string, last cluster.Lease, ttl time.Duration) (int64, bool, error) {
	if late := time.Duration(s.late.Swap(0)); late > 0 {
		time.AfterFunc(late, func() { _, _, _ = s.memory.TakeOver(ctx, id, last, ttl) })
		<-ctx.Done()
		return 0, false, ctx.Err()
	}
	return s.memory.TakeOver(ctx, id, last, ttl)
}

func (s *simulated) Leave(ctx context.Context, id string) error {
	if s.cut.Load() {
		return context.DeadlineExceeded
	}
	return s.memory.Leave(ctx, id)
}

// simulate starts a gateway on the store.
func simulate(t *testing.T, store *memory, late time.Duration) *simulated {
	g := &simulated{memory: store}
	g.late.Store(int64(late))
	g.Member = cluster.New(g, slog.New(slog.DiscardHandler), "simulated")
	g.Fitness = func([]cluster.Gateway) string {
		if g.unfit.Load() {
			return "slow"
		}
		return ""
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = g.Run(ctx) }()
	g.stop = func() { cancel(); <-done }
	t.Cleanup(g.stop)
	return g
}

// two starts a gateway that leads and one that does not.
func two(t *testing.T, store *memory) (leads, other *simulated) {
	leads = simulate(t, store, 0)
	time.Sleep(time.Second)
	other = simulate(t, store, 0)
	time.Sleep(2 * time.Second)
	if !leads.Leads() || other.Leads() {
		t.Fatal("the first does not lead alone")
	}
	return leads, other
}

// TestALeaseThatWasNearlyOverIsUsedAgain: a renewal took too long for the gateway to trust it, but the lease is valid.
func TestALeaseThatWasNearlyOverIsUsedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := simulate(t, newMemory(), 0)
		time.Sleep(time.Second)
		g.stall.Store(true)
		time.Sleep(cluster.LeaseTime)
		if g.Leads() {
			t.Error("it trusts a lease whose renewal nobody confirmed")
		}
		g.stall.Store(false)
		time.Sleep(cluster.LeaseTime)
		if token, leads := g.Token(); !leads || token != 1 {
			t.Errorf("token %d, leads: %v", token, leads)
		}
	})
}

// TestAGatewayThatRenewsTooLateResigns, if there is another one.
func TestAGatewayThatRenewsTooLateResigns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemory()
		leads, other := two(t, store)
		leads.slow.Store(int64(2400 * time.Millisecond))
		time.Sleep(10 * time.Second)
		if leads.Leads() || !other.Leads() {
			t.Error("a gateway that cannot renew its lease in time leads on")
		}
		if store.granted() != 2 {
			t.Errorf("the lease was granted %d times", store.granted())
		}
	})
}

// TestALateTakeOverIsReadBack: the gateway has given it up and tries again. Whichever of both counts, it leads under
// the stored token.
func TestALateTakeOverIsReadBack(t *testing.T) {
	for _, late := range []time.Duration{2490 * time.Millisecond, 2510 * time.Millisecond, 3 * time.Second, 10 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			store := newMemory()
			g := simulate(t, store, late)
			time.Sleep(15 * time.Second)
			store.mu.Lock()
			defer store.mu.Unlock()
			if token, leads := g.Token(); !leads || token != store.lease.Token || store.grants != 1 {
				t.Errorf("after %v: leads: %v, under %d, stored is %d after %d grants", late, leads, token, store.lease.Token, store.grants)
			}
		})
	}
}

// TestARefusedWriteEndsTheLead: the gateway resigns and claims the lease again, under another token.
func TestARefusedWriteEndsTheLead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := simulate(t, newMemory(), 0)
		time.Sleep(time.Second)
		changed := g.Changed()
		g.Refused(1)
		select {
		case <-changed:
		default:
			t.Error("nobody is told")
		}
		time.Sleep(time.Second)
		if token, leads := g.Token(); !leads || token != 2 {
			t.Errorf("token %d, leads: %v", token, leads)
		}
		g.Refused(1) // of a write that was under way all the time
		if !g.Leads() {
			t.Error("a refused write under an earlier token ends the lead")
		}
	})
}

// TestASlowDatabaseCostsNoHandOver: a renewal may take nearly two seconds, as on a busy disk.
func TestASlowDatabaseCostsNoHandOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemory()
		leads, other := two(t, store)
		for range 5 {
			for _, g := range []*simulated{leads, other} {
				g.slow.Store(int64(1900 * time.Millisecond))
			}
			time.Sleep(time.Second)
			for _, g := range []*simulated{leads, other} {
				g.slow.Store(0)
			}
			for range 40 {
				time.Sleep(100 * time.Millisecond)
				if !leads.Leads() || other.Leads() {
					t.Fatal("the lease was handed over")
				}
			}
		}
	})
}

// TestADeadGatewayIsMissedWhenItsLeaseEnds, not at the next regular renewal, and at no time do two lead.
func TestADeadGatewayIsMissedWhenItsLeaseEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemory()
		leads, other := two(t, store)
		for _, after := range []time.Duration{0, 130 * time.Millisecond, 260 * time.Millisecond, 390 * time.Millisecond} {
			time.Sleep(2*time.Second + after)
			leads.cut.Store(true)
			store.mu.Lock()
			ends := store.lease.Until
			store.mu.Unlock()
			for time.Now().Before(ends.Add(-10 * time.Millisecond)) {
				if other.Leads() {
					t.Fatal("taken over before the lease has ended")
				}
				time.Sleep(10 * time.Millisecond)
			}
			if leads.Leads() {
				t.Fatal("the dead gateway trusts a lease that is about to end")
			}
			time.Sleep(40 * time.Millisecond)
			synctest.Wait()
			if !other.Leads() {
				t.Fatal("nobody leads after the lease has ended")
			}
			leads.cut.Store(false)
			leads, other = other, leads
		}
	})
}

// TestASetBackClockRevivesNobody: neither a gateway that is dead, nor one from which another has taken over.
func TestASetBackClockRevivesNobody(t *testing.T) {
	for _, after := range []time.Duration{0, time.Second, 4 * time.Second, 20 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			store := newMemory()
			leads, other := two(t, store)
			leads.cut.Store(true)
			time.Sleep(after)
			store.setClock(-30 * time.Second)
			time.Sleep(4 * time.Second)
			if token, ok := other.Token(); !ok || token != 2 {
				t.Errorf("set back %v after the death: token %d, leads: %v", after, token, ok)
			}
			store.setClock(-time.Hour)
			time.Sleep(time.Second)
			if !other.Leads() || store.granted() != 2 {
				t.Error("a live leader loses the lead")
			}
		})
	}
}

// TestAGatewayThatCannotWorkResigns, if there is a fit one, and lets that lead.
func TestAGatewayThatCannotWorkResigns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemory()
		leads, other := two(t, store)
		leads.unfit.Store(true)
		for range 100 {
			time.Sleep(10 * time.Millisecond)
			if leads.Leads() && other.Leads() {
				t.Fatal("two lead")
			}
		}
		time.Sleep(time.Second)
		if !other.Leads() {
			t.Fatal("the fit gateway does not lead")
		}
		other.unfit.Store(true) // so is the database, or all project servers
		time.Sleep(30 * time.Second)
		if !other.Leads() || store.granted() != 2 {
			t.Errorf("where nobody is fit, the lease was granted %d times", store.granted())
		}
		leads.unfit.Store(false)
		time.Sleep(time.Minute)
		if !leads.Leads() {
			t.Error("it never becomes fit again")
		}
		other.stop()
		leads.unfit.Store(true)
		time.Sleep(time.Minute)
		if !leads.Leads() {
			t.Error("the only gateway resigns")
		}
	})
}
