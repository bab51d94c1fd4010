package projectserver

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"switchyard/internal/board"
	"switchyard/internal/domain"
	"switchyard/internal/feed"
	"switchyard/internal/gitlog"
	"switchyard/internal/web"
)

// nowhere is a ResponseWriter that discards everything.
type nowhere struct{ header http.Header }

func (n nowhere) Header() http.Header         { return n.header }
func (n nowhere) Write(b []byte) (int, error) { return len(b), nil }
func (n nowhere) WriteHeader(int)             {}

// still is a board that never changes.
type still struct{ Board }

func (still) View() *board.View { return &emptyView }

var emptyView = board.View{Version: "v"}

func fullServer() *server {
	ring := feed.New(func() time.Time { return time.UnixMilli(1000) })
	for i := range feed.Capacity {
		ring.Record(feed.Notification{Type: domain.StageTransition, StoryID: fmt.Sprint(i), Name: "Story of some length", FromStage: "2_current", ToStage: "3_qa"})
	}
	return &server{Server: Server{Board: still{}, Feed: ring, Commits: gitlog.New(gitlog.Options{})}, Errors: web.Errors{Log: slog.New(slog.DiscardHandler)}}
}

// feedQueries are a whole feed, a part, and nothing new.
var feedQueries = []string{"", "since=1400", "since=1499"}

// TestAnAnswerOfTheFeedTakesFewAllocations: they do not grow with the answer, and most are for the query.
func TestAnAnswerOfTheFeedTakesFewAllocations(t *testing.T) {
	p := fullServer()
	for _, query := range feedQueries {
		r := httptest.NewRequest("GET", "/api/events?"+query, nil)
		w := nowhere{http.Header{}}
		if got := testing.AllocsPerRun(100, func() { _ = p.events(w, r) }); got > 10 {
			t.Errorf("%s: %v allocations", query, got)
		}
	}
}

func BenchmarkFeedHandler(b *testing.B) {
	p := fullServer()
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
