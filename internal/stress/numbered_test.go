//go:build stress

package stress

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sort"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// numbered is a project server whose events are about the stories 0, 1, 2, …. It keeps all of them, so that none is dropped
// however long nobody reads.
type numbered struct {
	name string

	mu      sync.Mutex
	stamps  []int64
	records []string
	news    chan struct{} // closed by the next event
}

// newNumbered starts project servers behind one listener. It returns them and their address; each is below it, at its name.
func newNumbered(t *testing.T, count int) (all []*numbered, address string) {
	mux := http.NewServeMux()
	for i := range count {
		n := &numbered{name: fmt.Sprintf("project-%02d", i), news: make(chan struct{})}
		mux.HandleFunc("GET /"+n.name+"/api/events", n.feed)
		all = append(all, n)
	}
	web := httptest.NewServer(mux)
	t.Cleanup(web.Close)
	t.Cleanup(web.CloseClientConnections)
	return all, web.URL
}

// push records the next event.
func (n *numbered) push() {
	n.mu.Lock()
	defer n.mu.Unlock()
	stamp := time.Now().UnixMilli()
	if k := len(n.stamps); k > 0 {
		stamp = max(stamp, n.stamps[k-1]+1)
	}
	n.records = append(n.records, fmt.Sprintf(
		`{"type":"stage_transition","story_id":"%d","story_name":"Story %d","from_stage":"1_backlog","to_stage":"2_current","timestamp_ms":%d}`,
		len(n.records), len(n.records), stamp))
	n.stamps = append(n.stamps, stamp)
	close(n.news)
	n.news = make(chan struct{})
}

// count returns the number of events.
func (n *numbered) count() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.records)
}

// after returns the events with timestamps after since, the number of all events, and a channel that the next one closes.
func (n *numbered) after(since int64) (records []string, sequence int, news <-chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	first := sort.Search(len(n.stamps), func(i int) bool { return n.stamps[i] > since })
	return n.records[first:len(n.records):len(n.records)], len(n.records), n.news
}

func (n *numbered) feed(w http.ResponseWriter, r *http.Request) {
	since, _ := strconv.ParseInt(r.URL.Query().Get("since"), 10, 64)
	wait, _ := time.ParseDuration(r.URL.Query().Get("wait"))
	ctx, cancel := context.WithTimeout(r.Context(), wait)
	defer cancel()
	records, sequence, news := n.after(since)
	if len(records) == 0 {
		select {
		case <-news:
			records, sequence, _ = n.after(since)
		case <-ctx.Done():
		}
	}
	w.Header().Set("Feed-Instance", "the only one")
	w.Header().Set("Feed-Sequence", strconv.Itoa(sequence))
	fmt.Fprint(w, "["+strings.Join(records, ",")+"]")
}

// pushDuring records an event now and then during trouble.
func (n *numbered) pushDuring(pause time.Duration, trouble func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		trouble()
	}()
	every := time.NewTicker(pause)
	defer every.Stop()
	for over := false; !over; {
		n.push()
		select {
		case <-every.C:
		case <-done:
			over = true
		}
	}
}
