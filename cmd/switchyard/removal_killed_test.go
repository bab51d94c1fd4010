package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"switchyard/internal/waittest"
)

// longFeed serves a feed with said records, all of which it keeps, below any path.
func longFeed(t *testing.T, said *atomic.Int64) string {
	began := time.Now().UnixMilli()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		since, _ := strconv.ParseInt(r.URL.Query().Get("since"), 10, 64)
		records := []map[string]any{}
		for i := range said.Load() {
			if at := began + i; at > since {
				records = append(records, map[string]any{
					"type": "story_blocked", "story_id": strconv.FormatInt(i, 10), "story_name": "Story", "reason": "waits", "timestamp_ms": at,
				})
			}
		}
		if len(records) == 0 {
			select {
			case <-r.Context().Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
		_ = json.NewEncoder(w).Encode(records)
	}))
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	return server.URL
}

// TestARemovalOfOldEventsMayBeKilled: the removal continues after each start, and removed events are not stored again, even if the
// project is added again at another address and its whole feed is read again.
func TestARemovalOfOldEventsMayBeKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("takes over a second of processor time")
	}
	onEachEngine(t, func(t *testing.T, on engine) {
		const events, kept = 1500, 500
		var said atomic.Int64
		said.Store(events)
		feed, dir, address := longFeed(t, &said), t.TempDir(), freeAddress(t)
		begin := func() (*process, remote) {
			p := on.start(t, switchyard(t, dir, "gateway", "--listen="+address, "--poll-interval=100ms", "--keep-events=1s"))
			return p, remote{t, p.url}
		}
		p, gateway := begin()
		gateway.register("alpha", feed+"/one")
		stored := func(last int) func() bool {
			return func() bool { return gateway.page("before=&limit=1").StoryID == strconv.Itoa(last) }
		}
		oldest := func() string { return gateway.page("limit=1").StoryID }
		waittest.Until(t, "all events stored", stored(events-1))
		for last, kills := oldest(), 0; last != strconv.Itoa(events-kept); last = oldest() {
			waittest.Until(t, "some events removed", func() bool { return oldest() != last })
			if kills < 3 {
				kills++
				p.killHard()
				p, gateway = begin()
			}
		}
		gateway.only(events-kept, events)

		if status, text := p.do(t, "DELETE", "/api/gateway/projects/alpha", ""); status != 204 {
			t.Fatalf("removing the project: %d %s", status, text)
		}
		said.Add(1)
		gateway.register("alpha", feed+"/two")
		waittest.Until(t, "the new event stored", stored(events))
		waittest.Until(t, "the oldest removed", func() bool { return oldest() == strconv.Itoa(events+1-kept) })
		gateway.only(events+1-kept, events+1)
	})
}

// page returns the first event of a page of the stream.
func (s remote) page(query string) event {
	s.t.Helper()
	var page struct{ Events []event }
	s.get("/api/gateway/events?"+query, &page)
	return append(page.Events, event{})[0]
}

// only checks that the stream has the events from first to end, exclusively, each once.
func (s remote) only(first, end int) {
	s.t.Helper()
	var got, want []string
	for _, e := range s.stream() {
		got = append(got, e.StoryID)
	}
	for i := range end - first {
		want = append(want, fmt.Sprint(first+i))
	}
	if !slices.Equal(got, want) {
		s.t.Errorf("%d events from %v to %v, want each from %d to %d once", len(got), got[:min(3, len(got))], got[max(0, len(got)-3):], first, end-1)
	}
}
