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
	*postgres.Duties
	cut  atomic.Bool
	stop func()
}

func (g *gateway) Renew(ctx context.Context, id string, lease time.Duration) ([]string, time.Duration, error) {
	if g.cut.Load() {
		return nil, 0, fmt.Errorf("cut off")
	}
	return g.Duties.Renew(ctx, id, lease)
}

func (g *gateway) Leave(ctx context.Context, id string) error {
	if g.cut.Load() {
		return fmt.Errorf("cut off")
	}
	return g.Duties.Leave(context.WithoutCancel(ctx), id) // however long a busy machine takes
}

var duties = func() (names []string) {
	for i := range 300 {
		names = append(names, fmt.Sprintf("feed of project %d", i))
	}
	return names
}()

func start(t *testing.T, url, name string, wanted ...string) *gateway {
	t.Helper()
	if wanted == nil {
		wanted = duties
	}
	db, err := postgres.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	g := &gateway{Duties: db.Duties()}
	g.Member = cluster.New(g, slog.New(slog.DiscardHandler), name, func() []string { return wanted })
	ctx, cancel := context.WithCancel(context.Background())
	done, heard := make(chan struct{}), make(chan struct{})
	go func() { defer close(heard); _ = db.Run(ctx) }()
	go func() { defer close(done); _ = g.Run(ctx) }()
	g.stop = func() { cancel(); <-done; <-heard }
	t.Cleanup(g.stop)
	return g
}

// owners returns how many duties each gateway has, and fails the test if two have the same one.
func owners(t *testing.T, gateways ...*gateway) (counts []int, all int) {
	t.Helper()
	counts = make([]int, len(gateways))
	for _, duty := range duties {
		var owner *gateway
		var epoch int64
		for i, g := range gateways {
			e, ok := g.Epoch(duty)
			if !ok {
				continue
			}
			if owner != nil {
				// The first one may have handed it over in the meantime.
				if again, ok := owner.Epoch(duty); ok && again == epoch {
					t.Fatalf("two gateways have the %s", duty)
				}
			} else {
				all++
			}
			counts[i]++
			owner, epoch = g, e
		}
	}
	return counts, all
}

// TestDutiesHaveOneOwnerEach: whichever gateways come and go, no duty has two owners, and soon each has one again.
func TestDutiesHaveOneOwnerEach(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	one := start(t, url, "one")
	waittest.Until(t, "one has all", func() bool { counts, _ := owners(t, one); return counts[0] == len(duties) })
	two, three := start(t, url, "two"), start(t, url, "three")
	waittest.Until(t, "three share", func() bool {
		counts, all := owners(t, one, two, three)
		return all == len(duties) && counts[0] > 50 && counts[1] > 50 && counts[2] > 50
	})
	before, ok := two.Epoch(duties[0])
	if !ok {
		before, ok = one.Epoch(duties[0])
	}
	if !ok {
		before, _ = three.Epoch(duties[0])
	}

	began := time.Now()
	two.stop() // a clean stop releases its duties at once
	if live, err := one.Gateways(t.Context()); err != nil || slices.ContainsFunc(live, func(g cluster.Gateway) bool { return g.Name == "two" }) {
		t.Errorf("after a clean stop the live gateways are %v, %v", live, err)
	}
	waittest.Until(t, "two share what the stopped one had", func() bool {
		counts, all := owners(t, one, three)
		return all == len(duties) && counts[0] > 100 && counts[1] > 100
	})
	t.Logf("taken over from a stopped gateway in %v", time.Since(began))

	began = time.Now()
	three.cut.Store(true)
	waittest.Until(t, "one takes over from the one that was cut off", func() bool {
		_, all := owners(t, one, three)
		counts, _ := owners(t, one)
		return counts[0] == len(duties) && all == len(duties)
	})
	t.Logf("taken over from a gateway that was cut off in %v", time.Since(began))
	var after int64
	waittest.Until(t, "one has the duty", func() (ok bool) { after, ok = one.Epoch(duties[0]); return ok })
	if after < before {
		t.Errorf("epoch %d follows %d", after, before)
	}

	three.cut.Store(false) // it joins again under a new id
	waittest.Until(t, "two share again", func() bool {
		counts, all := owners(t, one, three)
		return all == len(duties) && counts[1] > 100
	})
}

// TestMoreDutiesThanOneStepAreSharedByTwo: claims that would outlast a lease are made in steps, with the lease renewed in between.
func TestMoreDutiesThanOneStepAreSharedByTwo(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	var many []string
	for i := range manyDuties {
		many = append(many, fmt.Sprintf("feed of project %d", i))
	}
	began := time.Now()
	one := start(t, url, "one", many...)
	const sample = 50 // checking all would take too long
	has := func(g *gateway) (n int) {
		for i := 0; i < len(many); i += sample {
			duty := many[i]
			if _, ok := g.Epoch(duty); ok {
				n++
			}
		}
		return n
	}
	waittest.Until(t, "one has all", func() bool { return has(one) == len(many)/sample })
	t.Logf("one has %d duties after %v", len(many), time.Since(began))
	began = time.Now()
	other := start(t, url, "other", many...)
	waittest.Until(t, "two share all", func() bool { return has(other) > len(many)/sample/3 && has(one)+has(other) == len(many)/sample })
	t.Logf("two share them after %v", time.Since(began))
	began = time.Now()
	one.stop()
	waittest.Until(t, "the other one has all", func() bool { return has(other) == len(many)/sample })
	t.Logf("one has all again after %v", time.Since(began))
}
