package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"switchyard/internal/waittest"
)

// hook is a receiver of webhooks that accepts some messages, refuses some, and takes a while for each.
type hook struct {
	*httptest.Server
	mu       sync.Mutex
	calls    int
	accepted []string // the ids of accepted messages, in order
}

func newHook(t *testing.T) *hook {
	h := &hook{}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		time.Sleep(2 * time.Millisecond)
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.calls++; h.calls%197 == 0 {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		h.accepted = append(h.accepted, r.Header.Get("webhook-id"))
	}))
	t.Cleanup(func() { h.CloseClientConnections(); h.Close() })
	return h
}

// count returns how many messages were accepted, how many of them for the first time, and whether those came in the order of
// their events.
func (h *hook) count() (all, different int, ordered bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	seen, last := map[string]bool{}, 0
	ordered = true
	for _, id := range h.accepted {
		if seen[id] {
			continue
		}
		seen[id] = true
		n, _ := strconv.Atoi(id[strings.LastIndexByte(id, '_')+1:])
		ordered = ordered && n > last
		last = n
	}
	return len(h.accepted), len(seen), ordered
}

// TestKillsSkipNoMessage: while the gateway is killed again and again, every event is told, in order. What comes twice was under
// way at a kill, and has the same id.
func TestKillsSkipNoMessage(t *testing.T) {
	t.Parallel()
	const events, kills = 200, 4 // never over a hundred wait: these would come as a digest
	dir, h := t.TempDir(), newHook(t)
	feed := &countedFeed{}
	project := httptest.NewServer(feed)
	t.Cleanup(func() { project.CloseClientConnections(); project.Close() })
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	run := func() *process {
		return start(t, switchyard(t, dir, "gateway", "--listen", address, "--data", "DIR/data", "--poll-interval", "50ms"))
	}
	p := run()
	post := func(path, body string) string {
		t.Helper()
		response, err := http.Post(p.url+path, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		text, _ := io.ReadAll(response.Body)
		if response.StatusCode >= 300 {
			t.Fatalf("%s: %d %s", path, response.StatusCode, text)
		}
		return string(text)
	}
	post("/api/gateway/projects", fmt.Sprintf(`{"name":"alpha","url":%q}`, project.URL))
	post("/api/gateway/targets", fmt.Sprintf(`{"name":"hook","url":"%s/secret","events":["story_blocked"],"alerts":["target_failed"]}`, h.URL))
	for round := range kills + 1 {
		feed.add(events / (kills + 1))
		if round == kills {
			break
		}
		_, before, _ := h.count()
		waittest.Until(t, "some were told", func() bool { _, n, _ := h.count(); return n > before+30 })
		p.stop(t, syscall.SIGKILL)
		p = run()
	}
	waittest.Until(t, "all were told", func() bool { _, n, _ := h.count(); return n >= events })
	all, different, ordered := h.count()
	t.Logf("%d events, %d kills: %d messages sent, %d repeated, %d lost", events, kills, all, all-different, events-different)
	if different != events || all-different > kills || !ordered {
		t.Errorf("%d messages, %d different ones, in order: %v", all, different, ordered)
	}
	if log := p.stderr.String(); strings.Contains(log, "/secret") || strings.Contains(log, "whsec_") {
		t.Errorf("the log has secrets: %s", log)
	}
}

// countedFeed is a project server whose feed has as many events as were added.
type countedFeed struct {
	mu sync.Mutex
	n  int
}

func (f *countedFeed) add(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.n += n
}

func (f *countedFeed) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.URL.Path != "/api/events" {
		fmt.Fprint(w, `{"project":"alpha","stages":[]}`)
		return
	}
	since, _ := strconv.Atoi(r.URL.Query().Get("since"))
	records := []json.RawMessage{}
	for i := max(since+1, f.n-499); i <= f.n; i++ {
		records = append(records, fmt.Appendf(nil, `{"type":"story_blocked","story_id":"%d_story","story_name":"S","reason":"r","timestamp_ms":%d}`, i, i))
	}
	_ = json.NewEncoder(w).Encode(records)
}
