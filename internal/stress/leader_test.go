//go:build stress

package stress

import (
	"context"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// TestALeaderThatReachesTooLittleResigns: three of four projects refuse it, and another gateway reaches them.
func TestALeaderThatReachesTooLittleResigns(t *testing.T) {
	g := newGroup(t, "")
	projects, address := newNumbered(t, 4)
	door := newWire(t, loopback(t, 30), strings.TrimPrefix(address, "http://"))
	for i, p := range projects {
		if i > 0 {
			address = "http://" + door.listener.Addr().String()
		}
		must(t, "POST", g.members[0].url+"/api/gateway/projects", map[string]string{"name": p.name, "url": address + "/" + p.name}, nil)
		p.push()
	}
	lonely := g.leader()
	if !until(soon, func() bool { return len(wholeStream(t, lonely.url)) == len(projects) }) {
		t.Fatal("not all projects are followed")
	}
	door.refuse(lonely.current.Process.Pid)
	began := time.Now()
	for _, p := range projects {
		p.push()
	}
	for _, m := range g.members {
		if !until(2*resigned, func() bool { return len(wholeStream(t, m.url)) == 2*len(projects) }) {
			t.Errorf("%s shows %d events of %d", m.url, len(wholeStream(t, m.url)), 2*len(projects))
		}
	}
	t.Logf("all gateways show everything after %v", time.Since(began))
	if next := g.leader(); next == lonely {
		t.Error("the gateway that reaches one project leads on")
	}
	if log := lonely.lastLines(20); !strings.Contains(log, "that this one cannot reach") {
		t.Errorf("it does not say why it resigned:\n%s", log)
	}
}

const (
	// databaseRoundTrip is how far the database is away.
	databaseRoundTrip = 10 * time.Millisecond
	// farGateway is what 99 of 100 events may take from the receipt at one gateway until a reader at another has them. An
	// append is two round trips, the news of it half of one, and to read it one more: 35 ms. Of events that come faster
	// some wait for the append before them.
	farGateway = 5 * databaseRoundTrip
	// farTries is how often that is measured, since a machine may be busy with something else.
	farTries = 3
)

// TestEventsReachOtherGatewaysOverASlowNetwork: each gateway is 10 ms away from the database.
func TestEventsReachOtherGatewaysOverASlowNetwork(t *testing.T) {
	g := newGroup(t, "")
	projects, address := newNumbered(t, 1)
	must(t, "POST", g.members[0].url+"/api/gateway/projects", map[string]string{"name": "p", "url": address + "/" + projects[0].name}, nil)
	leader := g.leader()
	for _, m := range g.members {
		m.wire.slow(databaseRoundTrip)
	}
	other := g.members[(slices.Index(g.members, leader)+1)%len(g.members)]
	var mu sync.Mutex
	var between []time.Duration // the gateways
	seen := func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(between)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go follow(ctx, t, other.url, func(e event) {
		mu.Lock()
		defer mu.Unlock()
		between = append(between, e.seen.Sub(time.UnixMilli(e.Received)))
	})
	time.Sleep(time.Second)
	series := func(events int) (median, p99 time.Duration) {
		mu.Lock()
		between = nil
		mu.Unlock()
		for range events {
			projects[0].push()
			time.Sleep(100 * time.Millisecond)
		}
		if !until(soon, func() bool { return seen() >= events }) {
			t.Fatalf("%d events of %d", seen(), events)
		}
		mu.Lock()
		defer mu.Unlock()
		slices.Sort(between)
		return between[len(between)/2], between[len(between)*99/100]
	}
	series(50) // the first events prepare statements on each connection, which is another round trip
	for range farTries {
		median, p99 := series(300)
		t.Logf("gateway to gateway at %v from the database: median %v, p99 %v", databaseRoundTrip, median, p99)
		if p99 <= farGateway {
			return
		}
	}
	t.Errorf("the p99 is over %v", farGateway)
}

// locked is how long something else holds a lock on the table of events.
const locked = 20 * time.Second

// TestAForeignLockOnEventsIsNamed: each gateway says steadily that events cannot be stored, and nothing is lost.
func TestAForeignLockOnEventsIsNamed(t *testing.T) {
	g := newGroup(t, "")
	projects, address := newNumbered(t, 4)
	for _, p := range projects {
		must(t, "POST", g.members[0].url+"/api/gateway/projects", map[string]string{"name": p.name, "url": address + "/" + p.name}, nil)
		p.push()
	}
	if !until(soon, func() bool { return len(wholeStream(t, g.members[0].url)) == len(projects) }) {
		t.Fatal("not all projects are followed")
	}
	before := map[*member]int{}
	for _, m := range g.members {
		before[m] = strings.Count(m.lastLines(1_000_000), "\n")
	}
	connection, err := pgx.Connect(t.Context(), g.database)
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close(context.Background())
	if _, err := connection.Exec(t.Context(), "BEGIN; LOCK TABLE events IN EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	statuses := map[*member][]int{}
	for began := time.Now(); time.Since(began) < locked; time.Sleep(250 * time.Millisecond) {
		for _, p := range projects {
			p.push()
		}
		for i, status := range g.statuses("/readyz") {
			m := g.members[i]
			if k := len(statuses[m]); k == 0 || statuses[m][k-1] != status {
				statuses[m] = append(statuses[m], status)
			}
		}
	}
	if _, err := connection.Exec(t.Context(), "COMMIT"); err != nil {
		t.Fatal(err)
	}
	refused, named := 0, 0
	for _, m := range g.members {
		text, err := os.ReadFile(m.log.Name())
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Count(string(text), "\n") - before[m]
		t.Logf("%s: readiness %v, %d lines of log", m.url, statuses[m], lines)
		if len(statuses[m]) > 2 || lines > 20 {
			t.Errorf("readiness %v, %d lines:\n%s", statuses[m], lines, m.lastLines(20))
		}
		if slices.Contains(statuses[m], http.StatusServiceUnavailable) {
			refused++
		}
		if strings.Contains(string(text), "takes too long") {
			named++
		}
	}
	if refused == 0 || named == 0 {
		t.Errorf("%d gateways are not ready, %d name the reason", refused, named)
	}
	g.await(returned)
	total := 0
	for _, p := range projects {
		total += p.count()
	}
	for _, m := range g.members {
		if !until(returned, func() bool { return len(wholeStream(t, m.url)) == total }) {
			t.Errorf("%s shows %d events of %d", m.url, len(wholeStream(t, m.url)), total)
		}
	}
}
