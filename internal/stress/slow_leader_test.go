//go:build stress

package stress

import (
	"testing"
	"time"
)

// resigned is how soon a leader that cannot work must have left the lead to another gateway.
const resigned = 20 * time.Second

// TestALeaderOnASlowLineResigns: it can renew its lease over 1 kB/s, but not append what comes in.
func TestALeaderOnASlowLineResigns(t *testing.T) {
	g := newGroup(t, "")
	projects, address := newNumbered(t, 4)
	for _, p := range projects {
		must(t, "POST", g.members[0].url+"/api/gateway/projects", map[string]string{"name": p.name, "url": address + "/" + p.name}, nil)
	}
	slow := g.leader()
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for tick := time.NewTicker(50 * time.Millisecond); ; {
			for _, p := range projects {
				p.push()
			}
			select {
			case <-tick.C:
			case <-stop:
				return
			}
		}
	}()
	time.Sleep(2 * time.Second)
	slow.wire.throttle(1000)
	began := time.Now()
	var next *member
	if !until(resigned, func() bool { next = g.leaderNow(); return next != nil && next != slow }) {
		t.Fatal("the gateway on a slow line leads on")
	}
	t.Logf("another gateway leads after %v", time.Since(began))
	close(stop)
	<-stopped
	total := 0
	for _, p := range projects {
		total += p.count()
	}
	if !until(returned, func() bool { return len(wholeStream(t, next.url)) >= total }) {
		t.Errorf("%d events of %d", len(wholeStream(t, next.url)), total)
	}
	t.Logf("all %d events are stored after %v", total, time.Since(began))
	slow.wire.throttle(0)
	g.await(returned)
	time.Sleep(time.Second) // what it shows is not older than that
	if !until(returned, func() bool { return len(wholeStream(t, slow.url)) == total }) {
		t.Errorf("the gateway that was slow shows %d events of %d", len(wholeStream(t, slow.url)), total)
	}
}
