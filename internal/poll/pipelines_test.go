package poll_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/internal/upstream"
)

func (y *site) wantNoticed(want ...string) {
	y.t.Helper()
	synctest.Wait()
	y.mu.Lock()
	defer y.mu.Unlock()
	if got := strings.Join(y.noticed, " "); got != strings.Join(want, " ") {
		y.t.Errorf("noticed %q, want %q", got, want)
	}
	y.noticed = nil
}

// turn gives the pipeline another version.
func (s *server) turn(version string) { s.change(func() { s.pipeline = version }); s.push() }

func TestReadsSayWhatBecomesOfThePipeline(t *testing.T) {
	a := newServer("i", 10)
	a.pipeline = "v1"
	following(t, a, func(y *site) {
		y.pass(soon)
		y.wantNoticed("v1+")
		a.turn("v2") // an arrival, say
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
		if y.noticed[0] != "v2" {
			t.Errorf("when it is back: %q", y.noticed)
		}
	})
}

func TestNewsAfterAChangeOfThePipelineComeSoon(t *testing.T) {
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
