package poll_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/upstream"
)

func TestGapsAreMarkedByTheRules(t *testing.T) {
	t.Run("first read ever is none", func(t *testing.T) {
		a := newServer("i", 10, 20)
		a.sequence = 700
		following(t, a, func(y *site) { y.want("10 20") })
	})
	t.Run("dropped between two reads", func(t *testing.T) {
		a := newServer("i", 10)
		following(t, a, func(y *site) {
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
		following(t, a, func(y *site) {
			y.stop()
			a.size = 1
			a.push(10, 20)
			y.start()
			y.want("1:20 20")
		})
	})
	t.Run("new instance is read from its beginning", func(t *testing.T) {
		a := newServer("i", 10, 20)
		following(t, a, func(y *site) {
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
		following(t, a, func(y *site) {
			y.stop()
			a.size = 2
			a.restart("j", 100, 110, 120)
			y.start()
			y.want("10 20 1:110 110 120")
		})
	})
	t.Run("refused records were received", func(t *testing.T) {
		a := newServer("i", 10)
		following(t, a, func(y *site) {
			a.change(func() {
				a.answer = func(a *upstream.FeedAnswer) {
					if len(a.Records) > 0 {
						a.Received += 2
						a.Refused = []upstream.RefusedRecord{{JSON: []byte(`1`), Why: domain.ErrNoObject}, {JSON: []byte(`{}`), Why: domain.ErrNoStamp}}
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
			if n := y.log.Count("skipped"); n != 2 {
				t.Errorf("%d log lines for two refused records", n)
			}
		})
	})
	t.Run("a count without records stays due", func(t *testing.T) {
		a := newServer("i", 10)
		following(t, a, func(y *site) {
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
		following(t, a, func(y *site) {
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
		following(t, a, func(y *site) {
			for i, sequence := range []int64{-1, 0, 1, 0} {
				y.pass(time.Second)
				a.change(func() { a.answer = func(a *upstream.FeedAnswer) { a.Sequence = sequence } })
				a.push(int64(20 + i))
			}
			y.want("10 20 21 22 23")
		})
	})
	t.Run("without headers there is none", func(t *testing.T) {
		a := newServer("", 10)
		a.plain = true
		following(t, a, func(y *site) {
			a.change(func() { a.size = 1 })
			a.push(20, 30, 40)
			y.pass(interval)
			y.want("10 40")
		})
	})
	t.Run("a server that learns the headers", func(t *testing.T) {
		a := newServer("i", 10, 20)
		a.plain = true
		following(t, a, func(y *site) {
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
	following(t, a, func(y *site) {
		y.want("10 10 20 30")
		if second := y.reads[0].Records[1]; string(second.JSON) != `{"second":1,"timestamp_ms":10}` {
			t.Errorf("records of equal stamps were swapped: %s", second.JSON)
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
	following(t, a, func(y *site) {
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
		y.before = func(domain.FeedRead) {
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
				if r.Type == domain.FeedGap {
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
	following(t, a, func(y *site) {
		y.setFailure(errors.New("disk full"))
		a.push(20)
		y.pass(time.Minute)
		a.push(30)
		y.want("10")
		y.setFailure(nil)
		y.pass(30 * time.Second)
		a.push(40)
		y.want("10 20 30 40")
		if n := y.log.Count("cannot be read"); n != 1 {
			t.Errorf("%d log lines", n)
		}
	})
}
