//go:build stress

package stress

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"
)

const (
	// severalProjects have eventsOfEach events each, at eventRate a second in all while there are more faults to come.
	severalProjects = 40
	eventsOfEach    = 5_000
	eventRate       = 1_000
	// frozen is longer than a lease.
	frozen = 8 * time.Second
	// takenOver is how soon another gateway must take over from a killed one.
	takenOver = 5 * time.Second
	// handedOver is how soon it must take over from a stopped one.
	handedOver = 2 * time.Second
	// returned is how soon everything must work again once PostgreSQL is back.
	returned = 12 * time.Second
	// gone is how long PostgreSQL is down.
	gone = time.Minute
)

// TestSeveralGatewaysLoseAndDoubleNothing: 200,000 events arrive while gateways and PostgreSQL are killed, frozen and cut off.
func TestSeveralGatewaysLoseAndDoubleNothing(t *testing.T) {
	g := newGroup(t, "")
	projects, address := newNumbered(t, severalProjects)
	for _, p := range projects {
		must(t, "POST", g.members[0].url+"/api/gateway/projects", map[string]string{"name": p.name, "url": address + "/" + p.name}, nil)
	}
	watcher := newWatcher(t, projects)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var running sync.WaitGroup
	running.Go(func() { watcher.run(ctx, g.members) })
	hurry, produced := make(chan struct{}), make(chan struct{})
	go func() { produce(projects, hurry); close(produced) }()

	s := &several{t: t, group: g, watcher: watcher, projects: projects}
	s.during("nothing happens", soon, func() { time.Sleep(3 * time.Second) })
	for range g.members {
		m := g.leader()
		s.during("the leader is killed", takenOver, func() { m.kill(); time.Sleep(6 * time.Second) })
		s.during("and started again", takenOver, m.start)
		m = g.leader()
		s.during(fmt.Sprintf("the leader is frozen for %v", frozen), takenOver, func() { m.freeze(frozen) })
		m = g.leader()
		s.during(fmt.Sprintf("the leader is cut off for %v", frozen), takenOver, func() { m.wire.blackhole(); time.Sleep(frozen); m.wire.heal() })
		m = g.leader()
		s.during("the leader is stopped", handedOver, func() { m.stop(); time.Sleep(time.Second) })
		s.during("and started again", takenOver, m.start)
	}
	s.during("PostgreSQL is restarted", returned, func() { g.postgres.Stop(); g.restart() })
	s.during("PostgreSQL crashes", returned, func() { g.postgres.Kill(); g.restart() })
	s.during(fmt.Sprintf("PostgreSQL is gone for %v", gone), gone+returned+soon, func() { g.postgres.Stop(); time.Sleep(gone); g.restart() }) // 60,000 events have gathered

	close(hurry)
	<-produced
	s.awaitAll(2 * time.Minute)
	stop()
	running.Wait()
	g.await(returned)
	t.Logf("the reader asked %d times", watcher.asked)
	s.check()
}

// produce produces each project's events at a steady rate, and the rest at once when hurry is closed.
func produce(projects []*numbered, hurry <-chan struct{}) {
	tick := time.NewTicker(time.Second / eventRate * severalProjects)
	defer tick.Stop()
	for range eventsOfEach {
		for _, p := range projects {
			p.push()
		}
		select {
		case <-tick.C:
		case <-hurry:
		}
	}
}

// several is the test of a group with its results.
type several struct {
	t        *testing.T
	group    *group
	watcher  *watcher
	projects []*numbered
}

// during calls do, waits until all events so far have arrived, and logs the longest silence of a project.
func (s *several) during(what string, limit time.Duration, do func()) {
	s.t.Helper()
	s.watcher.silence()
	do()
	s.awaitAll(limit + 5*time.Second)
	silence := s.watcher.silence()
	s.t.Logf("%-36s a project was silent for %v at most", what+":", silence.Round(10*time.Millisecond))
	if silence > limit {
		s.t.Errorf("%s: a project was silent for %v, more than %v", what, silence, limit)
	}
}

// awaitAll waits until all events so far have arrived.
func (s *several) awaitAll(limit time.Duration) {
	s.t.Helper()
	counts := map[string]int{}
	for _, p := range s.projects {
		counts[p.name] = p.count()
	}
	if !until(limit, func() bool { return s.watcher.has(counts) }) {
		s.t.Fatalf("some events did not arrive within %v: %s", limit, s.watcher.missing(counts))
	}
}

// check checks that each gateway has each event once, and that all have the same stream.
func (s *several) check() {
	var first []event
	for i, m := range s.group.members {
		stream := wholeStream(s.t, m.url)
		if i == 0 {
			first = stream
		} else if !slices.Equal(stream, first) {
			s.t.Errorf("gateway %d has another stream than the first: %d events and %d", i, len(stream), len(first))
		}
	}
	next := map[string]int{}
	var last int64
	lost, doubled := 0, 0
	for _, e := range first {
		number, err := strconv.Atoi(e.StoryID)
		if err != nil || e.ID <= last {
			s.t.Errorf("event %d after %d: %+v", e.ID, last, e)
		}
		last = e.ID
		switch due := next[e.Project]; {
		case number > due:
			lost += number - due
			next[e.Project] = number + 1
		case number < due:
			doubled++
		default:
			next[e.Project]++
		}
	}
	for _, p := range s.projects {
		lost += p.count() - next[p.name]
	}
	s.t.Logf("%d events: %d lost, %d doubled", len(first), lost, doubled)
	if lost > 0 || doubled > 0 || len(first) != severalProjects*eventsOfEach {
		s.t.Errorf("%d events, %d lost, %d doubled; want %d", len(first), lost, doubled, severalProjects*eventsOfEach)
	}
}
