//go:build stress

package stress

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	honestProjects = 9
	liarTime       = 8 * time.Second
	// fast is the time limit of responses about honest projects, for the median and the 95th percentile.
	fast, fastMost = 100 * time.Millisecond, 250 * time.Millisecond
	// maxResident is the gateway's memory limit beside such a project, in MiB.
	maxResident = 250
)

// honest is a well-behaved project server.
type honest struct {
	mu   sync.Mutex
	last int64
	news chan struct{}
}

func (h *honest) push() (stamp int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last = max(time.Now().UnixMilli(), h.last+1)
	close(h.news)
	h.news = make(chan struct{})
	return h.last
}

func (h *honest) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/api/pipeline" {
		fmt.Fprint(w, `{"stages":[{"name":"1_backlog","items":[]},{"name":"2_current","items":[{"story_id":"1_a","story_name":"A","blocked":null,"merge_failure":null,"since_ms":1}]},{"name":"5_done","items":[]}]}`)
		return
	}
	since, _ := strconv.ParseInt(r.URL.Query().Get("since"), 10, 64)
	wait, _ := time.ParseDuration(r.URL.Query().Get("wait"))
	over := time.After(wait)
	for held := true; ; {
		h.mu.Lock()
		last, news := h.last, h.news
		h.mu.Unlock()
		if last > since || !held {
			w.Header().Set("Feed-Instance", "honest")
			if last > since {
				fmt.Fprintf(w, `[{"type":"stage_transition","story_id":"1_a","story_name":"A","from_stage":"1_backlog","to_stage":"2_current","timestamp_ms":%d}]`, last)
			} else {
				fmt.Fprint(w, `[]`)
			}
			return
		}
		select {
		case <-news:
		case <-over:
			held = false
		case <-r.Context().Done():
			return
		}
	}
}

// repeat joins text(0) to text(n-1).
func repeat(n int, text func(i int) string) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = text(i)
	}
	return strings.Join(parts, ",")
}

// lies are hostile responses by their path; n is the number of the request.
var lies = map[string]struct {
	path string
	body func(n int) string
}{
	"90,000 stages": {"/api/pipeline", func(int) string {
		return `{"stages":[` + repeat(90_000, func(i int) string { return fmt.Sprintf(`{"name":"%d_x","items":[]}`, i) }) + `]}`
	}},
	"195,000 blocked stories": {"/api/pipeline", func(int) string {
		return `{"stages":[{"name":"2_current","items":[` + repeat(195_000, func(i int) string { return fmt.Sprintf(`{"story_id":"%d","blocked":"no"}`, i) }) + `]},{"name":"5_done","items":[]}]}`
	}},
	"long names": {"/api/pipeline", func(n int) string {
		return `{"stages":[` + repeat(8, func(i int) string {
			return fmt.Sprintf(`{"name":"%d_%d","items":[{"story_id":"%[3]s","story_name":"%[3]s","blocked":"%[3]s"}]}`, i, n, strings.Repeat("x", 300_000))
		}) + `]}`
	}},
	"deep pipeline": {"/api/pipeline", func(int) string { return `{"stages":` + strings.Repeat("[", 900) + strings.Repeat("]", 900) + `}` }},
	"long ids": {"/api/events", func(n int) string {
		return `[` + repeat(8, func(i int) string {
			return fmt.Sprintf(`{"type":"stage_transition","story_id":"%d_%d%s","from_stage":"a","to_stage":"b","timestamp_ms":%d}`, n, i, strings.Repeat("x", 900_000), n)
		}) + `]`
	}},
	"long ids that fit": {"/api/events", func(n int) string {
		return `[` + repeat(120, func(i int) string {
			return fmt.Sprintf(`{"type":"stage_transition","story_id":"%d_%d%s","from_stage":"a","to_stage":"b","timestamp_ms":%d}`, n, i, strings.Repeat("x", 60_000), n)
		}) + `]`
	}},
	"tiny parts": {"/api/events", func(int) string { return `[` + repeat(190_000, func(int) string { return `{"a":{}}` }) + `]` }},
	"tiny parts of a record": {"/api/events", func(n int) string {
		return fmt.Sprintf(`[{"timestamp_ms":%d,"a":[`, n) + repeat(900_000, func(int) string { return `{"a":{}}` }) + `]}]`
	}},
	"deep records": {"/api/events", func(n int) string {
		return `[` + repeat(1000, func(int) string {
			return fmt.Sprintf(`{"timestamp_ms":%d,"a":%s%s}`, n, strings.Repeat("[", 900), strings.Repeat("]", 900))
		}) + `]`
	}},
	"a flood": {"/api/events", func(n int) string {
		return `[` + repeat(60_000, func(i int) string {
			return fmt.Sprintf(`{"type":"story_blocked","story_id":"s","reason":"no","timestamp_ms":%d}`, n*100_000+i)
		}) + `]`
	}},
	"a flood of one stamp": {"/api/events", func(n int) string {
		return `[` + repeat(100_000, func(i int) string { return fmt.Sprintf(`{"type":"x","n":%d,"timestamp_ms":5}`, n*100_000+i) }) + `]`
	}},
}

func TestALiarCostsItsOwnRowOnly(t *testing.T) {
	program := build(t)
	for name, lie := range lies {
		t.Run(name, func(t *testing.T) {
			requests := 0
			var mu sync.Mutex
			prepared := lie.body(1)
			liar := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != lie.path {
					fmt.Fprint(w, map[string]string{"/api/pipeline": `{"stages":[]}`, "/api/events": `[]`}[r.URL.Path])
					return
				}
				mu.Lock()
				requests++
				text := prepared
				if requests > 1 && requests%5 == 0 { // generating them takes CPU time as well
					prepared = lie.body(requests)
				}
				mu.Unlock()
				w.Header().Set("Feed-Instance", "liar")
				_, _ = io.WriteString(w, text)
			}))
			defer func() { liar.CloseClientConnections(); go liar.Close() }() // it may still be writing
			gateway := newServer(t, "gateway", loopback(t, 1), program, "gateway", "--data", filepath.Join(t.TempDir(), "data"))
			gateway.start()
			var all []*honest
			for i := range honestProjects {
				h := &honest{news: make(chan struct{})}
				web := httptest.NewServer(h)
				defer web.Close()
				defer web.CloseClientConnections()
				all = append(all, h)
				must(t, "POST", gateway.url+"/api/gateway/projects", map[string]string{"name": fmt.Sprint("honest-", i), "url": web.URL}, nil)
				h.push()
			}
			must(t, "POST", gateway.url+"/api/gateway/projects", map[string]string{"name": "liar", "url": liar.URL}, nil)
			took := map[string][]time.Duration{}
			after := map[int]int64{}
			for began, n := time.Now(), 0; time.Since(began) < liarTime; n++ {
				i := n % honestProjects
				for _, path := range []string{"/", fmt.Sprint("/projects/honest-", i), "/api/gateway/attention", "/api/gateway/pipeline", "/api/gateway"} {
					start := time.Now()
					read(t, gateway.url+path)
					took[strings.TrimRight(path, "012345678")] = append(took[strings.TrimRight(path, "012345678")], time.Since(start))
				}
				start, stamp := time.Now(), all[i].push()
				for arrived := false; !arrived; {
					var page struct {
						Events []event
						Next   int64
					}
					must(t, "GET", fmt.Sprintf("%s/api/gateway/events?project=honest-%d&after=%d&wait=5s", gateway.url, i, after[i]), nil, &page)
					after[i] = page.Next
					arrived = slices.ContainsFunc(page.Events, func(e event) bool { return e.Timestamp == stamp })
					if time.Since(start) > 10*time.Second {
						t.Fatal("an event of an honest project did not arrive")
					}
				}
				took["delivery"] = append(took["delivery"], time.Since(start))
			}
			for what, list := range took {
				slices.Sort(list)
				median, most := list[len(list)/2], list[len(list)*19/20]
				t.Logf("%-24s median %v, 19 of 20 within %v, at most %v, of %d", what,
					median.Round(time.Millisecond), most.Round(time.Millisecond), list[len(list)-1].Round(time.Millisecond), len(list))
				if median > fast || most > fastMost {
					t.Errorf("%s took %v, 19 of 20 within %v", what, median, most)
				}
			}
			peak := gateway.memory("VmHWM:")
			t.Logf("%.0f MiB at most, the liar was asked %d times", peak, requests)
			if peak > maxResident {
				t.Errorf("the gateway took %.0f MiB", peak)
			}
		})
	}
}

func read(t *testing.T, url string) {
	t.Helper()
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept-Encoding", "gzip")
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if n, err := io.Copy(io.Discard, response.Body); err != nil || response.StatusCode != http.StatusOK {
		t.Errorf("%s: status %d, %d bytes, %v", url, response.StatusCode, n, err)
	}
}
