package poll_test

import (
	"fmt"
	"testing"
	"time"

	"switchyard/internal/domain"
)

const year = int64(365 * 24 * time.Hour / time.Millisecond)

func nowMS() int64 { return time.Now().UnixMilli() }

func TestStampsFarAheadHideNothingThatFollows(t *testing.T) {
	for _, plain := range []bool{true, false} {
		t.Run(fmt.Sprint("without Feed-Instance: ", plain), func(t *testing.T) {
			a := newServer("i")
			a.plain = plain
			following(t, a, func(y *site) {
				first := nowMS() - 5000 // its clock is a little behind
				a.push(first, first+year)
				y.pass(interval)
				for i := range int64(5) {
					a.push(first + 1 + i) // behind the gateway's clock, recorded after the record ahead of it
					y.pass(interval)
				}
				y.want(fmt.Sprint(first, first+year, first+1, first+2, first+3, first+4, first+5))
				if n := y.rate(a); n > 41 {
					t.Errorf("%d requests in a minute", n)
				}
				for _, ask := range a.requests() {
					if ask.since > nowMS() {
						t.Errorf("asked since %d, which is ahead", ask.since)
					}
				}
			})
		})
	}
}

func TestStampUpToADayAheadIsOrdinary(t *testing.T) {
	a := newServer("i")
	following(t, a, func(y *site) {
		ahead := nowMS() + year/365 - 1000
		a.push(ahead)
		y.pass(time.Minute)
		if last := a.requests()[len(a.requests())-1]; last.since != ahead {
			t.Errorf("asked since %d, want %d", last.since, ahead)
		}
		if y.reads[len(y.reads)-1].ClockSkewed {
			t.Error("said to be ahead")
		}
	})
}

func TestReadsSayWhetherTheProjectsClockIsAhead(t *testing.T) {
	a := newServer("i")
	a.size = 2
	following(t, a, func(y *site) {
		skewed := func() bool {
			y.pass(interval)
			y.mu.Lock()
			defer y.mu.Unlock()
			return y.reads[len(y.reads)-1].ClockSkewed
		}
		a.push(nowMS() + year)
		if !skewed() {
			t.Error("a year ahead is not noticed")
		}
		y.stop()
		y.start() // a new process: state in memory is lost
		if !skewed() || len(y.reads) < 2 {
			t.Errorf("not noticed after a restart, in %d reads", len(y.reads))
		}
		a.restart("j", nowMS()) // with its clock corrected
		if skewed() {
			t.Error("still said to be ahead")
		}
	})
}

func TestPositionThatWasStoredAheadIsGivenUp(t *testing.T) {
	a := newServer("", 10)
	a.plain = true
	following(t, a, func(y *site) {
		y.stop()
		y.mu.Lock()
		y.cursors = []domain.FeedCursor{{Project: "alpha", URL: "http://a", Since: nowMS() + year}}
		y.mu.Unlock()
		a.push(20)
		y.start()
		y.want("10 20")
	})
}
