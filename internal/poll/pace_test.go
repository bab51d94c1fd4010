package poll_test

import (
	"errors"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"switchyard/internal/upstream"
)

func TestProjectThatFloodsIsReadAtAThousandRecordsASecond(t *testing.T) {
	for name, c := range map[string]struct{ records, bytes, atMost int }{
		"small": {5000, 10, 60*1000 + 15_000},
		"large": {100, 60 << 10, 60*1000/60 + 300},
	} {
		t.Run(name, func(t *testing.T) {
			a := newServer("i", 1)
			n := int64(1)
			pad := strings.Repeat("x", c.bytes)
			following(t, a, func(y *site) {
				a.change(func() {
					a.impatient = true
					a.answer = func(answer *upstream.FeedAnswer) {
						answer.Records = nil
						for range c.records {
							n++
							r := stamped(n)
							r.JSON = append([]byte(`{"pad":"`+pad+`",`), r.JSON[1:]...)
							answer.Records = append(answer.Records, r)
						}
						answer.Received, answer.Left = c.records+1000, 1000
					}
				})
				y.pass(time.Minute)
				taken := 0
				for _, read := range y.reads {
					taken += len(read.Records)
				}
				if taken > c.atMost || taken < c.atMost/2 {
					t.Errorf("%d records in a minute, want about %d", taken, c.atMost)
				}
			})
		})
	}
}

func TestHugeBufferIsReadInStepsAndNothingIsLost(t *testing.T) {
	if testing.Short() {
		t.Skip("takes over a second of processor time")
	}
	const records = 12_000
	a := newServer("i")
	a.size = records
	var want []int64
	for i := range int64(records) {
		want = append(want, 10+i)
	}
	a.push(want...)
	slices.Reverse(a.records)
	web := httptest.NewServer(a)
	defer web.Close()
	defer web.CloseClientConnections()
	g := startRealGateway(t, time.Second)
	defer g.stop()
	g.register(t, "alpha", web.URL)
	got, after := g.next(t, "alpha", 0, records)
	if !slices.Equal(got, want) {
		t.Errorf("%d stamps, from %d to %d", len(got), got[0], got[len(got)-1])
	}
	a.push(want[records-1] + 1)
	if got, _ = g.next(t, "alpha", after, 1); got[0] != want[records-1]+1 {
		t.Errorf("then %v: a gap was marked", got)
	}
	cursors, err := g.Events.Cursors(t.Context(), "alpha")
	if err != nil || cursors[0].Sequence != records+1 {
		t.Errorf("position %+v, %v", cursors, err)
	}
}

func TestProjectThatIsBackIsReadAtOnce(t *testing.T) {
	a := newServer("i", 10)
	following(t, a, func(y *site) {
		down := errors.New("connection refused")
		a.change(func() { a.down = down })
		y.pass(time.Hour)
		a.push(20)
		a.change(func() { a.down = nil })
		y.poller.Observe("alpha", down)
		y.want("10")
		y.poller.Observe("alpha", nil)
		y.want("10 20")
		y.poller.Observe("unknown", nil)
	})
}

func TestServerWhoseFeedAloneFailsIsNotReadFaster(t *testing.T) {
	a := newServer("i", 10)
	following(t, a, func(y *site) {
		a.change(func() { a.down = errors.New("HTTP status 404") })
		y.pass(time.Hour)
		before := len(a.requests())
		for range 600 {
			y.poller.Observe("alpha", nil)
			y.pass(100 * time.Millisecond)
		}
		if n := len(a.requests()) - before; n > 6 {
			t.Errorf("%d requests in a minute", n)
		}
	})
}
