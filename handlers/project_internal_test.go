package handlers

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"testing"
	"time"

	"switchyard/internal/feed"
)

// nowhere is a ResponseWriter that costs nothing.
type nowhere struct{ header http.Header }

func (n nowhere) Header() http.Header         { return n.header }
func (n nowhere) Write(b []byte) (int, error) { return len(b), nil }
func (n nowhere) WriteHeader(int)             {}

func fullProject() *project {
	ring := feed.New(func() time.Time { return time.UnixMilli(1000) })
	for i := range feed.Capacity {
		ring.Record(feed.WorkItem{ItemID: fmt.Sprint(i), Name: "Story of some length", FromStage: "2_current", Stage: "3_qa"})
	}
	return &project{Project: Project{Feed: ring}, errorWriter: errorWriter{slog.New(slog.DiscardHandler)}, instance: []string{ring.Instance()}}
}

// feedQueries are a whole feed, a part, and nothing new.
var feedQueries = []string{"", "since=1400", "since=1499"}

func TestAnAnswerOfTheFeedTakesTwoAllocations(t *testing.T) {
	p := fullProject()
	for _, query := range feedQueries {
		r := httptest.NewRequest("GET", "/api/events?"+query, nil)
		w := nowhere{http.Header{}}
		if got := testing.AllocsPerRun(100, func() { _ = p.events(w, r) }); got > 2 {
			t.Errorf("%s: %v allocations", query, got)
		}
	}
}

func BenchmarkFeedHandler(b *testing.B) {
	p := fullProject()
	for _, query := range feedQueries {
		b.Run("?"+query, func(b *testing.B) {
			r := httptest.NewRequest("GET", "/api/events?"+query, nil)
			w := nowhere{http.Header{}}
			b.ReportAllocs()
			for b.Loop() {
				_ = p.events(w, r)
			}
		})
	}
}

// FuzzFeedQuery holds feedQuery against what net/url reads.
func FuzzFeedQuery(f *testing.F) {
	for _, seed := range []string{
		"", "since=1", "since=18446744073709551615&wait=1m", "since=18446744073709551616", "wait=61s", "since=%31&&=", "since=1;wait=1s",
		"%zz", "since", "since=+1", "a=b&since=1&since=x", "wait=-1ns", "wait=9223372036854775807ns",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		since, wait, err := feedQuery(raw)
		values, wrong := url.ParseQuery(raw)
		var wantSince uint64
		var wantWait time.Duration
		if wrong == nil && values.Has("since") {
			wantSince, wrong = strconv.ParseUint(values.Get("since"), 10, 64)
		}
		if wrong == nil && values.Has("wait") {
			wantWait, wrong = parseWait(values.Get("wait"))
		}
		if (err != nil) != (wrong != nil) {
			t.Fatalf("%q: %v, want %v", raw, err, wrong)
		}
		if err == nil && (since != wantSince || wait != wantWait || wait < 0 || wait > maxWait) {
			t.Errorf("%q: since %d, wait %v, want %d, %v", raw, since, wait, wantSince, wantWait)
		}
	})
}
