//go:build stress

package stress

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"
)

const (
	cycles = 100 // in each, the gateway and a project server are killed
	// beat is the mean time between kills.
	beat = 600 * time.Millisecond
	// soon is how soon a move must reach a reader of the stream if there are no faults but kills of the gateway. It is some
	// hundred times the usual time, for machines that are busy with other things.
	soon = 8 * time.Second
	// late is how soon everything must have arrived after the last fault: a hanging call is given up after 27 s, and the
	// longest pause after a failure is 30 s.
	late = 75 * time.Second
	// keepEvents is how long the gateway keeps more than minKept events of a project, longer than a reader can be late.
	keepEvents = "40s"
	keptOfEach = 500
	// floodings is how often more moves are made at once than a feed keeps, and flood how many.
	floodings, flood = 3, 900
)

// project is a project server with its board. The gateway may reach it through a proxy.
type project struct {
	*server
	name     string
	board    *board
	proxy    *proxy // nil if the gateway calls the server directly
	killed   bool   // whether it is killed now and then
	floods   bool   // whether it is disturbed only while flooded
	disturb  bool   // whether its proxy injects faults
	steps    bool   // whether its clock is set forward and back
	baseline int    // files open at the beginning
}

// site is a gateway with its projects.
type site struct {
	t        *testing.T
	began    time.Time
	gateway  *server
	projects []*project

	mu     sync.Mutex
	stream []event
}

func newSite(t *testing.T) *site {
	program, dir := build(t), t.TempDir()
	s := &site{t: t, began: time.Now()}
	s.gateway = newServer(t, "gateway", loopback(t, 1), program, "gateway", "--data", filepath.Join(dir, "data"), "--keep-events", keepEvents)
	for _, kind := range []struct {
		name  string
		count int
		project
		stories int
	}{
		{"calm", 1, project{}, 500},
		{"killed", 3, project{killed: true}, 500},
		{"disturbed", 3, project{disturb: true}, 500},
		{"both", 3, project{killed: true, disturb: true}, 500},
		{"stepped", 2, project{killed: true, steps: true}, 500},
		{"flooded", 1, project{floods: true}, 1000},
	} {
		for i := range kind.count {
			n := len(s.projects) + 2
			p := kind.project
			p.name = fmt.Sprintf("%s-%d", kind.name, i+1)
			work := filepath.Join(dir, p.name)
			p.board = newBoard(t, work, kind.stories)
			p.server = newServer(t, p.name, loopback(t, n), program, "project", "--name", p.name, "--work", work)
			if p.disturb || p.floods || p.steps {
				p.proxy = newProxy(t, loopback(t, 100+n), p.url)
			}
			if p.steps {
				p.proxy.clock = &clock{}
			}
			s.projects = append(s.projects, &p)
		}
	}
	return s
}

// start starts all servers and waits until each feed is followed.
func (s *site) start() {
	s.gateway.start()
	for _, p := range s.projects {
		p.start()
		url := p.url
		if p.proxy != nil {
			url = "http://" + p.proxy.address
		}
		must(s.t, "POST", s.gateway.url+"/api/gateway/projects", map[string]string{"name": p.name, "url": url}, nil)
		p.board.move(1)
	}
	s.awaitAll(late)
	for _, p := range s.projects {
		p.baseline = p.files()
	}
}

func (s *site) log(format string, args ...any) {
	s.t.Helper()
	s.t.Logf("after %.0f s: %s", time.Since(s.began).Seconds(), fmt.Sprintf(format, args...))
}

func (s *site) sees(e event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stream = append(s.stream, e)
}

// seen returns the events that a reader of the stream has seen, by project.
func (s *site) seen() map[string][]event {
	s.mu.Lock()
	defer s.mu.Unlock()
	byProject := map[string][]event{}
	for _, e := range s.stream {
		byProject[e.Project] = append(byProject[e.Project], e)
	}
	return byProject
}

// awaitAll waits until all the projects' events have reached the reader.
func (s *site) awaitAll(limit time.Duration) {
	s.t.Helper()
	held := map[string][]event{}
	for _, p := range s.projects {
		last := p.board.last()
		if !until(soon, func() bool { // until the last move was noticed
			var feed []event
			must(s.t, "GET", p.url+"/api/events", nil, &feed)
			held[p.name] = feed
			return slices.ContainsFunc(feed, func(e event) bool { return e.move() == last.name }) || !p.served(last.at, 0)
		}) {
			s.t.Fatalf("%s does not notice its last move", p.name)
		}
	}
	var missing []string
	if !until(limit, func() bool {
		missing = nil
		seen := s.seen()
		for _, p := range s.projects {
			for _, e := range held[p.name] {
				if !slices.ContainsFunc(seen[p.name], func(other event) bool { return other.move() == e.move() && other.recorded() == e.Timestamp }) {
					missing = append(missing, p.name+": "+e.move())
				}
			}
		}
		return len(missing) == 0
	}) {
		s.t.Fatalf("%d events do not arrive: %v", len(missing), missing[:min(len(missing), 10)])
	}
}

// makeFaults disturbs a project now and then until ctx ends.
func (p *project) makeFaults(ctx context.Context) {
	kinds := slices.Clone(faults)
	for ctx.Err() == nil {
		rand.Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
		for _, kind := range kinds {
			p.proxy.set(none)
			pause(ctx, time.Second+rand.N(5*time.Second))
			if ctx.Err() != nil {
				return
			}
			p.proxy.set(kind)
			pause(ctx, time.Second+rand.N(5*time.Second))
		}
	}
	p.proxy.set(none)
}

// overflow makes more moves than a feed holds while the gateway cannot read it.
func (p *project) overflow() {
	p.proxy.set(refuse)
	p.board.move(flood)
	until(soon, func() bool {
		var feed []event
		_, err := call(p.t.Context(), "GET", p.url+"/api/events", "", nil, &feed)
		return err == nil && feed[0].Timestamp > p.board.moves[len(p.board.moves)-flood].at.UnixMilli()
	})
	p.proxy.set(none)
}

func TestNothingIsLostOrDoubled(t *testing.T) {
	s := newSite(t)
	reading, stopReading := context.WithCancel(t.Context())
	defer stopReading()
	var readers, workers sync.WaitGroup
	readers.Go(func() { follow(reading, t, s.gateway.url, s.sees) })
	s.start()
	s.log("everything runs")

	working, stopWorking := context.WithCancel(t.Context())
	defer stopWorking()
	operator := &operator{t: t, gateway: s.gateway.url}
	for _, p := range s.projects {
		operator.projects = append(operator.projects, p.name)
		workers.Go(func() { p.board.keepMoving(working) })
	}
	workers.Go(func() { operator.run(working) })

	s.disturbed(s.killAll)
	s.log("%d kills, %d switches, %d agents joined", 2*cycles, operator.switches, operator.joins)
	s.awaitAll(late)

	// A running gateway must not accumulate leftovers of faults.
	baseline := s.usage()
	s.log("all has arrived; the gateway holds %+v", baseline)
	s.disturbed(s.useAndAbandon)
	s.awaitAll(late)
	stopWorking()
	workers.Wait()
	s.awaitAll(soon)
	s.log("all has arrived again")
	s.checkUsage(baseline)

	stopReading()
	readers.Wait()
	s.check()
	operator.check()
}

// disturbed calls do while some projects are disturbed.
func (s *site) disturbed(do func()) {
	ctx, stop := context.WithCancel(s.t.Context())
	defer stop()
	var disturbers sync.WaitGroup
	for _, p := range s.projects {
		if p.disturb {
			disturbers.Go(func() { p.makeFaults(ctx) })
		}
	}
	do()
	stop()
	disturbers.Wait()
}

// killAll repeatedly kills the gateway and the project servers during all this.
func (s *site) killAll() {
	var victims []*project
	for _, p := range s.projects {
		if p.killed {
			victims = append(victims, p)
		}
	}
	var floods sync.WaitGroup
	defer floods.Wait()
	for i := range cycles {
		s.gateway.kill()
		s.gateway.start()
		time.Sleep(beat/2 + rand.N(beat))
		victim := victims[i%len(victims)]
		victim.kill()
		victim.start()
		time.Sleep(beat/2 + rand.N(beat))
		if i%(cycles/floodings) == cycles/floodings/2 {
			floods.Go(s.projects[len(s.projects)-1].overflow)
		}
	}
}

// check compares the events that a reader saw with the moves that were made.
func (s *site) check() {
	stored := map[string][]event{}
	for _, e := range wholeStream(s.t, s.gateway.url) {
		stored[e.Project] = append(stored[e.Project], e)
	}
	seen, removed := s.seen(), 0
	for _, p := range s.projects {
		p.check(seen[p.name])
		p.checkStored(stored[p.name], seen[p.name])
		removed += len(seen[p.name]) - len(stored[p.name])
	}
	if s.log("%d old events were removed", removed); removed == 0 {
		s.t.Error("no old event was removed")
	}
}

// checkStored compares the events left in the store with those that a reader saw: the oldest may be missing, but none of the last.
func (p *project) checkStored(stored, seen []event) {
	if len(stored) < min(keptOfEach, len(seen)) || len(stored) > len(seen) {
		p.t.Errorf("%s: %d events are stored, a reader saw %d", p.name, len(stored), len(seen))
		return
	}
	same := func(a, b event) bool { a.seen, b.seen = time.Time{}, time.Time{}; return a == b }
	if !slices.EqualFunc(stored, seen[len(seen)-len(stored):], same) {
		p.t.Errorf("%s: other events are stored than the last ones that a reader saw", p.name)
	}
}

func (p *project) check(events []event) {
	arrived := map[string]time.Time{}
	missed := 0
	var last int64
	for _, e := range events {
		if e.Type == "feed_gap" {
			missed += e.Missed
			continue
		}
		if !arrived[e.move()].IsZero() {
			p.t.Errorf("%s: twice: %s", p.name, e.move())
		}
		if e.recorded() <= last {
			p.t.Errorf("%s: out of order: %s", p.name, e.move())
		}
		arrived[e.move()], last = e.seen, e.recorded()
	}
	var delays []time.Duration
	lost := 0
	for _, m := range p.board.moves {
		delay := arrived[m.name].Sub(m.at)
		switch {
		case arrived[m.name].IsZero():
			if p.served(m.at, soon) {
				lost++
			}
		case p.served(m.at, soon):
			delays = append(delays, delay)
		}
	}
	slices.Sort(delays)
	p.t.Logf("%s: %d moves, %d arrived, %d fell out of the feed; delay %v in the middle, %v at most",
		p.name, len(p.board.moves), len(arrived), missed, delays[len(delays)/2].Round(time.Millisecond), delays[len(delays)-1].Round(time.Millisecond))
	undisturbed := !p.disturb && !p.floods
	switch {
	case undisturbed && (lost > 0 || delays[len(delays)-1] > soon):
		p.t.Errorf("%s: %d moves lost, the slowest took %v", p.name, lost, delays[len(delays)-1])
	case !p.killed && len(arrived)+missed != len(p.board.moves):
		p.t.Errorf("%s: %d moves, but %d arrived and %d fell out of the feed", p.name, len(p.board.moves), len(arrived), missed)
	case !p.floods && missed > 0:
		p.t.Errorf("%s: a gap of %d", p.name, missed)
	case p.floods && missed == 0:
		p.t.Errorf("%s: no gap, though more happened than a feed holds", p.name)
	}
}
