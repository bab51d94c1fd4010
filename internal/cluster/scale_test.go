package cluster_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// simulation is many projects and the gateways that follow them, in virtual time.
type simulation struct {
	t      *testing.T
	store  *memory
	duties []string
	live   []*simulated
}

func (s *simulation) join() {
	s.live = append(s.live, simulate(s.t, s.store, func() []string { return s.duties }))
}

// awaitOwners waits until each duty has an owner, and returns how long that took and the smallest and the largest share.
func (s *simulation) awaitOwners() (took time.Duration, least, most int) {
	s.t.Helper()
	began := time.Now()
	for time.Since(began) < 10*time.Second {
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		shares := map[string]int{}
		s.store.mu.Lock()
		for _, d := range s.store.duties {
			if s.store.alive(d.gateway) {
				shares[d.gateway]++
			}
		}
		s.store.mu.Unlock()
		least, most = len(s.duties), 0
		all := 0
		for _, g := range s.live {
			share := shares[g.ID()]
			least, most, all = min(least, share), max(most, share), all+share
		}
		if all == len(s.duties) && float64(least) > 0.7*float64(all)/float64(len(s.live)) {
			return time.Since(began), least, most
		}
	}
	s.t.Fatalf("after %v the shares are %d to %d of %d", time.Since(began), least, most, len(s.duties))
	return 0, 0, 0
}

// moved waits until each duty has an owner and returns how many duties were newly granted since the last call.
func (s *simulation) moved(what string) int {
	s.t.Helper()
	took, least, most := s.awaitOwners()
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	claimed, claims := s.store.claimed, s.store.claims
	s.store.claimed, s.store.claims = 0, 0
	s.t.Logf("%s: complete within %v, %d duties granted by %d calls, shares of %d to %d\n", what, took, claimed, claims, least, most)
	return claimed
}

// TestTenGatewaysShareManyProjects: a gateway that joins, leaves or dies moves about its own share and no more,
// and the work of each at rest does not grow with the number of projects. make stress does this with 100,000: docs/scaling.md has
// the figures.
func TestTenGatewaysShareManyProjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &simulation{t: t, store: newMemory()}
		for i := range manyProjects {
			s.duties = append(s.duties, fmt.Sprintf("feed:project-%06d", i))
		}
		share := len(s.duties) / 10
		for range 10 {
			s.join()
		}
		s.moved("ten gateways start")

		s.join()
		if moved := s.moved("an eleventh joins"); moved > share*5/4 {
			t.Errorf("a join moved %d duties", moved)
		}
		s.live[10].stop()
		s.live = s.live[:10]
		if moved := s.moved("it leaves"); moved > share*5/4 {
			t.Errorf("a leave moved %d duties", moved)
		}
		killed := s.live[9]
		killed.cut.Store(true)
		s.live = s.live[:9]
		if moved := s.moved("one of ten dies"); moved > share*5/4 {
			t.Errorf("a death moved %d duties", moved)
		}
		killed.stop()

		s.store.mu.Lock()
		s.store.renewals = 0
		s.store.mu.Unlock()
		const rest = 10
		time.Sleep(rest * time.Second)
		s.store.mu.Lock()
		renewals, claims := s.store.renewals, s.store.claims
		s.store.mu.Unlock()
		t.Logf("nine at rest: %.1f renewals a second, %d claims", float64(renewals)/rest, claims)
		if claims > 0 || renewals > rest*9*2+9 {
			t.Errorf("at rest: %d renewals and %d claims in %d s", renewals, claims, rest)
		}
	})
}
