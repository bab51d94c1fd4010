package poll_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/internal/domain"
)

func TestRegistryChangesTakeEffectAtOnce(t *testing.T) {
	a, b := newServer("i", 10), newServer("k", 100)
	following(t, a, func(y *site) {
		y.add("http://b", b)
		beta := domain.Project{Name: "beta", URL: "http://b"}
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
		y.register(alpha, beta) // continues at its position
		y.pass(soon)
		if got := y.stream("beta"); got != "100 110" || b.requests()[len(b.requests())-2].since != 100 {
			t.Errorf("added again: %q", got)
		}
		y.register(domain.Project{Name: "alpha", URL: "http://b"}) // beta removed, alpha moved
		y.want("10 100 110")
		token := domain.Project{Name: "alpha", URL: "http://b", Token: "t"}
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
	following(t, a, func(y *site) {
		y.add("http://elsewhere", a)
		y.register(domain.Project{Name: "alpha", URL: "http://elsewhere"})
		y.want("10 20") // no gap, nothing stored twice
		y.register()
		synctest.Wait()
		a.change(func() { a.size = 2 })
		a.push(30, 40, 50)
		y.register(alpha) // had been read up to 20 here, too
		y.want("10 20 1:40 40 50")
		y.register(domain.Project{Name: "alpha", URL: "http://elsewhere"})
		a.push(60)
		y.want("10 20 1:40 40 50 60")
	})
}

func TestOtherServerUnderTheSameNameCountsAsNewInstance(t *testing.T) {
	a, b := newServer("i", 10), newServer("k", 5, 6)
	b.size, b.sequence = 2, 3
	following(t, a, func(y *site) {
		y.add("http://b", b)
		y.register(domain.Project{Name: "alpha", URL: "http://b"})
		y.want("10 1:5 5 6")
		y.register(alpha)
		a.push(20)
		y.want("10 1:5 5 6 20")
	})
}

func TestAnswerOfARemovedProjectIsNotRecorded(t *testing.T) {
	a := newServer("i", 10)
	following(t, a, func(y *site) {
		a.change(func() {
			a.beforeReply = func(context.Context) { y.register() } // removed while it answers, before the reader knows
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
	following(t, a, func(y *site) {
		b := newServer("k", 15)
		y.add("http://b", b)
		release := make(chan struct{})
		y.before = func(read domain.FeedRead) {
			if read.Cursor.URL == "http://a" {
				<-release // the store is slow
			}
		}
		y.pass(soon)
		a.push(20)
		synctest.Wait()
		y.register(domain.Project{Name: "alpha", URL: "http://b"})
		synctest.Wait()
		if n := len(b.requests()); n != 0 {
			t.Errorf("%d requests to the new server while the old one's answer is being stored", n)
		}
		close(release)
		y.want("10 20 15")
	})
}
