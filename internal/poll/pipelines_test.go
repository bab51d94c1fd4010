package poll_test

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/upstream"
	"switchyard/internal/waittest"
)

func (y *site) wantNoticed(want ...string) {
	y.t.Helper()
	synctest.Wait()
	y.mu.Lock()
	defer y.mu.Unlock()
	if got := strings.Join(y.reported, " "); got != strings.Join(want, " ") {
		y.t.Errorf("noticed %q, want %q", got, want)
	}
	y.reported = nil
}

// turn changes the version of the pipeline.
func (s *server) turn(version string) { s.change(func() { s.pipeline = version }); s.push() }

func TestReadsSayWhatBecomesOfThePipeline(t *testing.T) {
	a := newServer("i", 10)
	a.pipeline = "v1"
	following(t, a, func(y *site) {
		y.pass(soon)
		y.wantNoticed("v1+")
		a.turn("v2") // for example by a new story
		y.wantNoticed("v2")
		a.push(20)
		y.pass(100 * time.Millisecond)
		y.wantNoticed("v2+")
		a.change(func() { a.down = errors.New("connection refused") })
		a.push()
		y.pass(time.Minute)
		y.wantNoticed("failed")
		a.change(func() { a.down = nil })
		y.pass(time.Minute)
		y.mu.Lock()
		defer y.mu.Unlock()
		if y.reported[0] != "v2" {
			t.Errorf("when it is back: %q", y.reported)
		}
	})
}

func TestEventsAfterAChangeOfThePipelineArriveSoon(t *testing.T) {
	a := newServer("i", 10)
	a.pipeline = "v1"
	following(t, a, func(y *site) {
		y.pass(soon)
		for i := range int64(20) {
			a.turn(fmt.Sprint("w", i))
			synctest.Wait()
			a.push(100 + i)
			y.pass(100 * time.Millisecond)
			if got := y.stream("alpha"); !strings.HasSuffix(got, fmt.Sprint(100+i)) {
				t.Fatalf("change %d: %s", i, got)
			}
		}
	})
}

func TestAPipelineThatNeverRestsIsAskedForSomeTimesASecond(t *testing.T) {
	a := newServer("i", 10)
	version := 0
	a.answer = func(answer *upstream.FeedAnswer) {
		version++
		answer.Pipeline = fmt.Sprint(version)
	}
	following(t, a, func(y *site) {
		y.pass(soon)
		before := len(a.requests())
		y.pass(10 * time.Second)
		if n := len(a.requests()) - before; n > 300 {
			t.Errorf("%d requests in 10 s", n)
		}
	})
}

// TestChangesWithoutEventsAreNoticedWithoutReaders: a story is added, unblocked and removed.
func TestChangesWithoutEventsAreNoticedWithoutReaders(t *testing.T) {
	a := newServer("i", 10)
	show := func(version, items string) {
		a.change(func() {
			a.board = `{"project":"a","stages":[{"name":"1_backlog","items":[]},{"name":"2_current","items":[` + items + `]}]}`
		})
		a.turn(version)
	}
	show("v1", "")
	web := httptest.NewServer(a)
	defer web.Close()
	defer web.CloseClientConnections()
	g := startRealGateway(t, time.Second)
	defer g.stop()
	g.register(t, "alpha", web.URL)
	visits := func(want string, is func([]domain.Visit) bool) {
		t.Helper()
		waittest.Until(t, want, func() bool {
			visits, err := g.Visits.Story(t.Context(), "alpha", "7_login")
			return err == nil && is(visits)
		})
	}
	const item = `{"story_id":"7_login","story_name":"Log in","blocked":%s,"merge_failure":null,"since_ms":1}`
	show("v2", fmt.Sprintf(item, `"no key"`))
	visits("an arrival, blocked", func(v []domain.Visit) bool { return len(v) == 1 && !v[0].BlockedSince.IsZero() && v[0].To.IsZero() })
	show("v3", fmt.Sprintf(item, "null"))
	visits("unblocked", func(v []domain.Visit) bool { return v[0].BlockedSince.IsZero() && v[0].Blocked > 0 })
	show("v4", "")
	visits("departure", func(v []domain.Visit) bool { return !v[0].To.IsZero() })
}
