//go:build stress

package stress

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// webhooks is a receiver that counts the ids of what it accepts. It fails each two hundredth call, leaves one of five hundred
// without an answer, and is slow to answer each seventh.
type webhooks struct {
	mu    sync.Mutex
	calls int
	times map[int]int // by event
	order []int       // events when they came first
}

func (h *webhooks) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	h.mu.Lock()
	h.calls++
	n := h.calls
	h.mu.Unlock()
	switch {
	case n%500 == 250:
		<-r.Context().Done()
		return
	case n%200 == 0:
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	case n%7 == 0:
		time.Sleep(50 * time.Millisecond)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	id := r.Header.Get("webhook-id")
	event, _ := strconv.Atoi(id[strings.LastIndexByte(id, '_')+1:])
	if h.times[event]++; h.times[event] == 1 {
		h.order = append(h.order, event)
	}
}

func (h *webhooks) different() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.times)
}

// TestEachEventReachesItsTargetOnce: while the gateways, including the leader, are killed, frozen and cut off in turn, a webhook gets
// every event, in order, and twice only what was under way when its sender lost the lead.
func TestEachEventReachesItsTargetOnce(t *testing.T) {
	g := newGroup(t, "")
	h := &webhooks{times: map[int]int{}}
	receiver := httptest.NewServer(h)
	t.Cleanup(receiver.Close)
	t.Cleanup(receiver.CloseClientConnections)
	projects, address := newNumbered(t, 1)
	p := projects[0]
	must(t, "POST", g.members[1].url+"/api/gateway/projects", map[string]string{"name": p.name, "url": address + "/" + p.name}, nil)
	must(t, "POST", g.members[2].url+"/api/gateway/targets", map[string]any{
		"name": "hook", "url": receiver.URL, "events": []string{"stage_transition"},
	}, nil)
	changes := 0
	p.pushDuring(100*time.Millisecond, func() { changes = g.changeLeaders() })
	if !until(late, func() bool { return h.different() == p.count() }) {
		t.Errorf("of %d events %d were told", p.count(), h.different())
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	repeated := 0
	for _, times := range h.times {
		repeated += times - 1
	}
	for i := 1; i < len(h.order); i++ {
		if h.order[i] < h.order[i-1] {
			t.Errorf("event %d came after %d", h.order[i], h.order[i-1])
		}
	}
	t.Logf("%d events: %d sent, %d repeated, %d lost", p.count(), len(h.times)+repeated, repeated, p.count()-len(h.times))
	if repeated > changes {
		t.Errorf("%d messages came twice", repeated)
	}
}
