package poll_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/upstream"
)

func TestServerWithInstanceIsFollowedByLongPollAndNewsArriveAtOnce(t *testing.T) {
	a := newServer("i", 10, 20)
	following(t, a, func(y *site) {
		y.want("10 20")
		y.pass(time.Second)
		a.push(2000)
		y.want("10 20 2000")
		if n := y.rate(a); n < 2 || n > 4 {
			t.Errorf("%d requests in an idle minute, want 60 s / 25 s", n)
		}
		for i, ask := range a.requests() {
			if want := 25 * time.Second; i == 0 && (ask.wait != 0 || ask.since != 0) || i > 0 && ask.wait != want {
				t.Errorf("request %d: since %d, wait %v", i, ask.since, ask.wait)
			}
		}
		if n := y.stored(); n != 2 {
			t.Errorf("%d reads stored, want none for answers without news", n)
		}
		for i := range int64(300) { // faster than it is read
			a.push(3000 + i)
			if i%3 == 0 {
				y.pass(time.Millisecond)
			}
		}
		y.pass(10 * time.Millisecond)
		if got := len(y.stream("alpha")); got != len("10 20")+301*len(" 2000") {
			y.want("each once")
		}
	})
}

func TestServerWithoutInstanceIsReadAtTheIntervalAndAskedAMillisecondBack(t *testing.T) {
	a := newServer("", 10, 20)
	a.plain = true
	following(t, a, func(y *site) {
		y.pass(10 * time.Second)
		a.push(20) // the stamp repeats, the content does not
		a.change(func() { a.records[2].JSON = []byte(`{"other":1,"timestamp_ms":20}`) })
		y.pass(interval)
		y.want("10 20 20")
		if n := y.rate(a); n < 30 || n > 41 {
			t.Errorf("%d requests in a minute, want one every 1.5 to 2 s", n)
		}
		asked := a.requests()
		for i, ask := range asked[1:] {
			if ask.since != 19 || ask.wait != 0 {
				t.Errorf("asked for %+v", ask)
			}
			if pause := ask.at.Sub(asked[i].at); pause > interval || pause < interval*3/4 {
				t.Errorf("pause %v: jitter only shortens, by a quarter at most", pause)
			}
		}
		if n := y.stored(); n != 3 {
			t.Errorf("%d reads stored, want none for an answer that repeats the one before", n)
		}
	})
}

// TestNoServerMakesTheReaderSpin whatever a server answers at once.
func TestNoServerMakesTheReaderSpin(t *testing.T) {
	n := int64(0)
	for name, c := range map[string]struct {
		server func(*server)
		atMost int // requests a minute
	}{
		"answers long-polls at once with nothing": {func(s *server) { s.impatient = true }, 41},
		"ignores since":                       {func(s *server) { s.deaf = true }, 41},
		"ignores since, without headers":      {func(s *server) { s.deaf, s.plain = true, true }, 41},
		"repeats itself with a growing count": {func(s *server) { s.deaf = true; s.answer = func(a *upstream.FeedAnswer) { n++; a.Sequence = n } }, 41},
		"claims a growing count without records": {func(s *server) {
			s.impatient = true
			s.answer = func(a *upstream.FeedAnswer) { n++; a.Sequence = 100 + n }
		}, 41},
		"has a new instance each time": {func(s *server) {
			s.deaf = true
			s.answer = func(a *upstream.FeedAnswer) { n++; a.Instance = fmt.Sprint(n) }
		}, 82},
		"alternates between two instances, one without header": {func(s *server) {
			s.deaf = true
			s.answer = func(a *upstream.FeedAnswer) { n++; a.Instance = []string{"", "x"}[n%2] }
		}, 82},
		"sends refused records only": {func(s *server) {
			s.impatient = true
			s.answer = func(a *upstream.FeedAnswer) { a.Received, a.Records = 5, nil }
		}, 41},
		"refuses": {func(s *server) { s.down = errors.New("connection refused") }, 15},
		"fails every other time": {func(s *server) {
			s.answer = func(*upstream.FeedAnswer) {
				if s.down = nil; len(s.asked)%2 == 0 {
					s.down = errors.New("connection reset")
				}
			}
		}, 30},
		"always has something newer": {func(s *server) {
			s.answer = func(a *upstream.FeedAnswer) { n++; a.Records, a.Received = []domain.Record{stamped(1000 + n)}, 1 }
		}, 60 * 667},
	} {
		t.Run(name, func(t *testing.T) {
			a := newServer("i", 10, 20)
			c.server(a)
			following(t, a, func(y *site) {
				y.pass(5 * time.Second)
				if n := y.rate(a); n > c.atMost || n == 0 {
					t.Errorf("%d requests a minute, want at most %d", n, c.atMost)
				}
			})
		})
	}
}

func TestFailingServerIsTriedAgainWithin30SecondsAndLoggedOnce(t *testing.T) {
	a := newServer("i", 10)
	following(t, a, func(y *site) {
		a.change(func() { a.down = errors.New("connection refused") })
		y.pass(time.Hour)
		asked := a.requests()
		for i, ask := range asked[2:] {
			if pause := ask.at.Sub(asked[i+1].at); pause > 30*time.Second {
				t.Errorf("pause %v", pause)
			}
		}
		if n := len(asked); n < 120 || n > 260 {
			t.Errorf("%d requests in an hour, want one in 15 to 30 s", n)
		}
		if n := y.log.Count("cannot be read"); n != 1 {
			t.Errorf("%d log lines, want one", n)
		}
		a.push(20)
		a.change(func() { a.down = nil })
		y.pass(30 * time.Second)
		y.want("10 20")
		if y.log.Count("read again") != 1 || a.requests()[len(asked)].wait != 0 {
			t.Error("recovery is not logged, or the first request after it waits")
		}
	})
}

// TestServerThatHangsIsAskedLessAndLess: a request that takes long does not count as successful reading.
func TestServerThatHangsIsAskedLessAndLess(t *testing.T) {
	a := newServer("i", 10)
	a.hanging = true
	following(t, a, func(y *site) {
		y.pass(time.Minute)
		before := len(a.requests())
		y.pass(time.Hour)
		if n := len(a.requests()) - before; n < 100 || n > 250 {
			t.Errorf("%d requests in an hour, want one in 15 to 32 s", n)
		}
		a.push(20)
		a.change(func() { a.hanging = false })
		y.pass(35 * time.Second)
		y.want("10 20")
	})
}

func TestOneProjectsTroubleDoesNotAffectOthers(t *testing.T) {
	a := newServer("i", 10)
	following(t, a, func(y *site) {
		projects := []domain.Project{alpha}
		for i, trouble := range []func(*server){
			func(s *server) { s.hanging = true },
			func(s *server) { s.down = errors.New("connection refused") },
			func(s *server) { s.beforeReply = func(context.Context) { panic("lost") } },
		} {
			s := newServer("i", 1)
			trouble(s)
			p := domain.Project{Name: fmt.Sprint("trouble", i), URL: fmt.Sprint("http://t", i)}
			y.add(p.URL, s)
			projects = append(projects, p)
		}
		y.register(projects...)
		for i := range int64(5) {
			y.pass(time.Minute)
			a.push(1000 * (i + 1))
		}
		y.want("10 1000 2000 3000 4000 5000")
		if y.log.Count("panic: lost") < 5 {
			t.Error("a reader that panics is not started again")
		}
	})
}

func TestPollerEndsWithItsContext(t *testing.T) {
	a := newServer("i", 10)
	following(t, a, func(y *site) {
		for _, trouble := range []func(){func() {}, func() { a.hanging = true }, func() { a.hanging, a.down = false, errors.New("x") }} {
			a.change(trouble)
			y.pass(time.Minute)
			began := time.Now()
			y.stop()
			if took := time.Since(began); took != 0 {
				t.Errorf("took %v to end", took)
			}
			y.start()
		}
	})
}

func TestWholeBuffersAreReadAFewAtATimeAndSlowServersDoNotHoldThatUp(t *testing.T) {
	following(t, newServer("i", 10), func(y *site) {
		var now, most atomic.Int64
		var projects []domain.Project
		for i := range 200 {
			s := newServer("i", 10)
			s.hanging = i%2 == 0
			s.beforeReply = func(context.Context) {
				most.Store(max(most.Load(), now.Add(1)))
				time.Sleep(10 * time.Millisecond)
				now.Add(-1)
			}
			p := domain.Project{Name: fmt.Sprintf("p%03d", i), URL: fmt.Sprint("http://p", i)}
			y.add(p.URL, s)
			projects = append(projects, p)
		}
		began := time.Now()
		y.register(projects...)
		for y.stored() < 1+100 {
			y.pass(10 * time.Millisecond)
		}
		if took := time.Since(began); took > 1100*time.Millisecond {
			t.Errorf("100 feeds took %v beside 100 servers that hang", took)
		}
		if n := most.Load(); n > 32 || n < 8 {
			t.Errorf("%d read at a time, want 32 at most", n)
		}
	})
}
