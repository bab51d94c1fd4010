package poll_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/internal/yard"
)

func TestServerWithInstanceIsFollowedByLongPollAndNewsArriveAtOnce(t *testing.T) {
	a := newServer("i", 10, 20)
	following(t, a, func(y *yardOf) {
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
	following(t, a, func(y *yardOf) {
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

// TestNoServerMakesTheReaderSpin holds for whatever a server does that a request costs nothing to.
func TestNoServerMakesTheReaderSpin(t *testing.T) {
	n := int64(0)
	for name, c := range map[string]struct {
		server func(*server)
		atMost int // requests a minute
	}{
		"answers long-polls at once with nothing": {func(s *server) { s.impatient = true }, 41},
		"ignores since":                          {func(s *server) { s.deaf = true }, 41},
		"ignores since, without headers":         {func(s *server) { s.deaf, s.plain = true, true }, 41},
		"repeats itself with a growing count":    {func(s *server) { s.deaf = true; s.answer = func(a *yard.FeedAnswer) { n++; a.Sequence = n } }, 41},
		"claims a growing count without records": {func(s *server) { s.impatient = true; s.answer = func(a *yard.FeedAnswer) { n++; a.Sequence = 100 + n } }, 41},
		"has a new instance each time": {func(s *server) {
			s.deaf = true
			s.answer = func(a *yard.FeedAnswer) { n++; a.Instance = fmt.Sprint(n) }
		}, 82},
		"has two instances in turn, one without header": {func(s *server) {
			s.deaf = true
			s.answer = func(a *yard.FeedAnswer) { n++; a.Instance = []string{"", "x"}[n%2] }
		}, 82},
		"sends refused records only": {func(s *server) {
			s.impatient = true
			s.answer = func(a *yard.FeedAnswer) { a.Received, a.Records = 5, nil }
		}, 41},
		"refuses": {func(s *server) { s.down = errors.New("connection refused") }, 15},
		"fails every other time": {func(s *server) {
			s.answer = func(*yard.FeedAnswer) {
				if s.down = nil; len(s.asked)%2 == 0 {
					s.down = errors.New("connection reset")
				}
			}
		}, 30},
		"always has something newer": {func(s *server) {
			s.answer = func(a *yard.FeedAnswer) { n++; a.Records, a.Received = []yard.Record{stamped(1000 + n)}, 1 }
		}, 60 * 667},
	} {
		t.Run(name, func(t *testing.T) {
			a := newServer("i", 10, 20)
			c.server(a)
			following(t, a, func(y *yardOf) {
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
	following(t, a, func(y *yardOf) {
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
		if n := y.log.count("cannot be read"); n != 1 {
			t.Errorf("%d log lines, want one", n)
		}
		a.push(20)
		a.change(func() { a.down = nil })
		y.pass(30 * time.Second)
		y.want("10 20")
		if y.log.count("read again") != 1 || a.requests()[len(asked)].wait != 0 {
			t.Error("recovery is not logged, or the first request after it waits")
		}
	})
}

func TestGapsAreMarkedByTheRules(t *testing.T) {
	t.Run("first read ever is none", func(t *testing.T) {
		a := newServer("i", 10, 20)
		a.sequence = 700
		following(t, a, func(y *yardOf) { y.want("10 20") })
	})
	t.Run("dropped between two reads", func(t *testing.T) {
		a := newServer("i", 10)
		following(t, a, func(y *yardOf) {
			y.stop()
			a.size = 3
			a.push(20, 30, 40, 50, 60)
			y.start()
			y.want("10 2:40 40 50 60")
			y.stop()
			a.push(70, 80, 90) // exactly fits
			y.start()
			y.want("10 2:40 40 50 60 70 80 90")
		})
	})
	t.Run("an empty first read begins the history", func(t *testing.T) {
		a := newServer("i")
		following(t, a, func(y *yardOf) {
			y.stop()
			a.size = 1
			a.push(10, 20)
			y.start()
			y.want("1:20 20")
		})
	})
	t.Run("new instance is read from its beginning", func(t *testing.T) {
		a := newServer("i", 10, 20)
		following(t, a, func(y *yardOf) {
			y.pass(time.Second)
			a.restart("j", 5, 15) // its clock is behind
			y.pass(time.Second)
			y.want("10 20 5 15")
			a.push(16)
			y.want("10 20 5 15 16")
		})
	})
	t.Run("new instance counts from 0", func(t *testing.T) {
		a := newServer("i", 10, 20)
		following(t, a, func(y *yardOf) {
			y.stop()
			a.size = 2
			a.restart("j", 100, 110, 120)
			y.start()
			y.want("10 20 1:110 110 120")
		})
	})
	t.Run("refused records were received", func(t *testing.T) {
		a := newServer("i", 10)
		following(t, a, func(y *yardOf) {
			a.change(func() {
				a.answer = func(a *yard.FeedAnswer) {
					if len(a.Records) > 0 {
						a.Received += 2
						a.Refused = []yard.RefusedRecord{{JSON: []byte(`1`), Why: yard.ErrNoObject}, {JSON: []byte(`{}`), Why: yard.ErrNoStamp}}
					}
				}
				a.sequence += 2
			})
			a.push(20)
			y.want("10 20")
			y.pass(time.Second)
			a.change(func() { a.sequence += 3 })
			a.push(30)
			y.want("10 20 1:30 30")
			if n := y.log.count("skipped"); n != 2 {
				t.Errorf("%d log lines for two refused records", n)
			}
		})
	})
	t.Run("a count without records stays due", func(t *testing.T) {
		a := newServer("i", 10)
		following(t, a, func(y *yardOf) {
			a.change(func() { a.sequence = 5; a.impatient = true })
			y.pass(time.Minute)
			y.want("10")
			a.push(20)
			y.pass(interval)
			y.want("10 4:20 20")
		})
	})
	t.Run("so it does in a new instance", func(t *testing.T) {
		a := newServer("i", 10)
		following(t, a, func(y *yardOf) {
			y.stop()
			a.restart("j")
			a.sequence = 4
			y.start()
			y.want("10")
			y.stop()
			y.start()
			a.push(20)
			y.want("10 4:20 20")
		})
	})
	t.Run("a lying count is none", func(t *testing.T) {
		a := newServer("i", 10)
		following(t, a, func(y *yardOf) {
			for i, sequence := range []int64{-1, 0, 1, 0} {
				y.pass(time.Second)
				a.change(func() { a.answer = func(a *yard.FeedAnswer) { a.Sequence = sequence } })
				a.push(int64(20 + i))
			}
			y.want("10 20 21 22 23")
		})
	})
	t.Run("without headers there is none", func(t *testing.T) {
		a := newServer("", 10)
		a.plain = true
		following(t, a, func(y *yardOf) {
			a.change(func() { a.size = 1 })
			a.push(20, 30, 40)
			y.pass(interval)
			y.want("10 40")
		})
	})
	t.Run("a server that learns the headers", func(t *testing.T) {
		a := newServer("i", 10, 20)
		a.plain = true
		following(t, a, func(y *yardOf) {
			a.change(func() { a.plain = false })
			y.pass(interval)
			y.want("10 20")
			a.push(30)
			y.want("10 20 30")
		})
	})
}

func TestRecordsAreStoredInTheOrderOfTheirStamps(t *testing.T) {
	a := newServer("i", 30, 10, 20, 10)
	a.records[3].JSON = []byte(`{"second":1,"timestamp_ms":10}`)
	following(t, a, func(y *yardOf) {
		y.want("10 10 20 30")
		if second := y.reads[0].Records[1]; string(second.JSON) != `{"second":1,"timestamp_ms":10}` {
			t.Errorf("equal stamps changed places: %s", second.JSON)
		}
		a.push(60, 50)
		y.want("10 10 20 30 50 60")
		y.pass(time.Second)
		if last := a.requests()[len(a.requests())-1]; last.since != 60 {
			t.Errorf("then asked since %d", last.since)
		}
	})
}

func TestHugeAnswerIsStoredInPartsThatCanBeContinued(t *testing.T) {
	var stamps []int64
	for i := range int64(2500) {
		stamps = append(stamps, 100+i/2) // in pairs: a part may end between equal stamps
	}
	a := newServer("i", 1)
	following(t, a, func(y *yardOf) {
		y.stop()
		a.size = 4000
		a.push(stamps...)
		a.change(func() {
			a.sequence += 7
			for i := range a.records {
				a.records[i].JSON = fmt.Appendf(nil, `{"n":%d}`, i)
			}
		})
		broken := errors.New("disk full")
		y.before = func(yard.FeedRead) {
			if y.fail = nil; len(y.reads) == 2 { // after the first read and one part
				y.fail, y.before = broken, nil
			}
		}
		y.start()
		if n := y.stored(); n != 2 {
			t.Fatalf("%d reads stored", n)
		}
		if cursor := y.cursors[0]; cursor.Since != 100+999/2-1 || cursor.Sequence != 1+7+999 {
			t.Errorf("position after a part: %+v", cursor)
		}
		y.setFailure(nil)
		y.pass(30 * time.Second)
		stored, gaps := map[string]int{}, 0
		for _, read := range y.reads {
			if len(read.Records) > 1000 {
				t.Errorf("%d records at once", len(read.Records))
			}
			for _, r := range read.Records {
				stored[string(r.JSON)]++
				if r.Type == yard.FeedGap {
					gaps++
				}
			}
		}
		if len(stored) != 1+1+2500 || gaps != 1 {
			t.Errorf("%d different records, %d gaps", len(stored), gaps)
		}
	})
}

func TestStoreThatFailsLosesAndDoublesNothing(t *testing.T) {
	a := newServer("i", 10)
	following(t, a, func(y *yardOf) {
		y.setFailure(errors.New("disk full"))
		a.push(20)
		y.pass(time.Minute)
		a.push(30)
		y.want("10")
		y.setFailure(nil)
		y.pass(30 * time.Second)
		a.push(40)
		y.want("10 20 30 40")
		if n := y.log.count("cannot be read"); n != 1 {
			t.Errorf("%d log lines", n)
		}
	})
}

func TestRegistryChangesTakeEffectAtOnce(t *testing.T) {
	a, b := newServer("i", 10), newServer("k", 100)
	following(t, a, func(y *yardOf) {
		y.add("http://b", b)
		beta := yard.Project{Name: "beta", URL: "http://b"}
		y.register(alpha, beta)
		synctest.Wait()
		if got := y.stream("beta"); got != "100" {
			t.Errorf("added project: %q", got)
		}
		asked := len(a.requests())
		y.register(alpha) // another project's removal
		synctest.Wait()
		b.push(110)
		y.pass(time.Minute)
		if got := y.stream("beta"); got != "100" {
			t.Errorf("removed project: %q", got)
		}
		if n := len(a.requests()) - asked; n > 3 {
			t.Errorf("%d requests to a project that did not change", n)
		}
		y.register(alpha, beta) // continues where it was
		y.pass(soon)
		if got := y.stream("beta"); got != "100 110" || b.requests()[len(b.requests())-2].since != 100 {
			t.Errorf("added again: %q", got)
		}
		y.register(yard.Project{Name: "alpha", URL: "http://b"}) // beta removed, alpha elsewhere
		y.want("10 100 110")
		token := yard.Project{Name: "alpha", URL: "http://b", Token: "t"}
		n := len(b.requests())
		y.register(token)
		synctest.Wait()
		if len(b.requests()) == n {
			t.Error("a new token is not used at once")
		}
	})
}

func TestSameInstanceUnderAnotherURLContinues(t *testing.T) {
	a := newServer("i", 10, 20)
	following(t, a, func(y *yardOf) {
		y.add("http://elsewhere", a)
		y.register(yard.Project{Name: "alpha", URL: "http://elsewhere"})
		y.want("10 20") // no gap, nothing stored twice
		y.register()
		synctest.Wait()
		a.change(func() { a.size = 2 })
		a.push(30, 40, 50)
		y.register(alpha) // was read up to 20 here, too
		y.want("10 20 1:40 40 50")
		y.register(yard.Project{Name: "alpha", URL: "http://elsewhere"})
		a.push(60)
		y.want("10 20 1:40 40 50 60")
	})
}

func TestOtherServerUnderTheSameNameCountsAsNewInstance(t *testing.T) {
	a, b := newServer("i", 10), newServer("k", 5, 6)
	b.size, b.sequence = 2, 3
	following(t, a, func(y *yardOf) {
		y.add("http://b", b)
		y.register(yard.Project{Name: "alpha", URL: "http://b"})
		y.want("10 1:5 5 6")
		y.register(alpha)
		a.push(20)
		y.want("10 1:5 5 6 20")
	})
}

func TestAnswerOfARemovedProjectIsNotRecorded(t *testing.T) {
	a := newServer("i", 10)
	following(t, a, func(y *yardOf) {
		a.change(func() {
			a.beforeReply = func(context.Context) { y.register() } // removed while it answers, even though the reader was not told yet
		})
		a.push(20)
		y.want("10")
		a.change(func() { a.beforeReply = nil })
		y.pass(time.Minute)
		y.register(alpha)
		y.want("10 20")
	})
}

func TestProjectHasOneReaderAtATime(t *testing.T) {
	a := newServer("i", 10)
	following(t, a, func(y *yardOf) {
		b := newServer("k", 15)
		y.add("http://b", b)
		release := make(chan struct{})
		y.before = func(read yard.FeedRead) {
			if read.Cursor.URL == "http://a" {
				<-release // the store is slow
			}
		}
		y.pass(soon)
		a.push(20)
		synctest.Wait()
		y.register(yard.Project{Name: "alpha", URL: "http://b"})
		synctest.Wait()
		if n := len(b.requests()); n != 0 {
			t.Errorf("%d requests to the new server while the old one's answer is being stored", n)
		}
		close(release)
		y.want("10 20 15")
	})
}

func TestOneProjectsTroubleIsItsOwn(t *testing.T) {
	a := newServer("i", 10)
	following(t, a, func(y *yardOf) {
		projects := []yard.Project{alpha}
		for i, trouble := range []func(*server){
			func(s *server) { s.hanging = true },
			func(s *server) { s.down = errors.New("connection refused") },
			func(s *server) { s.beforeReply = func(context.Context) { panic("lost") } },
		} {
			s := newServer("i", 1)
			trouble(s)
			p := yard.Project{Name: fmt.Sprint("trouble", i), URL: fmt.Sprint("http://t", i)}
			y.add(p.URL, s)
			projects = append(projects, p)
		}
		y.register(projects...)
		for i := range int64(5) {
			y.pass(time.Minute)
			a.push(1000 * (i + 1))
		}
		y.want("10 1000 2000 3000 4000 5000")
		if y.log.count("panic: lost") < 5 {
			t.Error("a reader that panics is not started again")
		}
	})
}

func TestPollerEndsWithItsContext(t *testing.T) {
	a := newServer("i", 10)
	following(t, a, func(y *yardOf) {
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
	following(t, newServer("i", 10), func(y *yardOf) {
		var now, most atomic.Int64
		var projects []yard.Project
		for i := range 200 {
			s := newServer("i", 10)
			s.hanging = i%2 == 0
			s.beforeReply = func(context.Context) {
				most.Store(max(most.Load(), now.Add(1)))
				time.Sleep(10 * time.Millisecond)
				now.Add(-1)
			}
			p := yard.Project{Name: fmt.Sprintf("p%03d", i), URL: fmt.Sprint("http://p", i)}
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
