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
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const (
	changingStories = 20_000
	changingTime    = 15 * time.Second
	// removalLimit is how long the removal of a project may take, whatever it does.
	removalLimit = time.Second
)

// changingBoard is a project server whose stories are all somewhere else at every fetch, each blocked for another reason.
type changingBoard struct {
	bodies  []string
	fetches atomic.Int64
}

func newChangingBoard() *changingBoard {
	b := &changingBoard{}
	stages := []string{"1_backlog", "2_current", "3_qa", "4_merge", "5_done"}
	for n := range stages {
		b.bodies = append(b.bodies, `{"stages":[`+repeat(len(stages), func(stage int) string {
			return fmt.Sprintf(`{"name":%q,"items":[`, stages[stage]) + repeat(changingStories/len(stages), func(i int) string {
				id := i*len(stages) + (stage+n)%len(stages)
				return fmt.Sprintf(`{"story_id":"%d_story","story_name":"Story %[1]d","blocked":"for reason %d","merge_failure":null}`, id, n)
			}) + `]}`
		})+`]}`)
	}
	return b
}

func (b *changingBoard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n := b.fetches.Load()
	if r.URL.Path == "/api/pipeline" {
		n = b.fetches.Add(1)
		w.Header().Set("ETag", fmt.Sprintf(`"%d"`, n))
		_, _ = io.WriteString(w, b.bodies[int(n)%len(b.bodies)])
		return
	}
	pause(r.Context(), 100*time.Millisecond)
	w.Header().Set("Feed-Instance", "changing")
	w.Header().Set("Pipeline-Version", fmt.Sprint(n+1)) // never the known one
	_, _ = io.WriteString(w, `[]`)
}

func TestABoardThatChangesAlwaysCostsItsOwnRowOnly(t *testing.T) {
	program := build(t)
	for name, readers := range map[string][]string{"API": {"/api/gateway/pipeline"}, "pages": {"/", "/projects/changing"}} {
		t.Run(name, func(t *testing.T) {
			board := newChangingBoard()
			changing := httptest.NewServer(board)
			defer changing.Close()
			defer changing.CloseClientConnections()
			gateway := newServer(t, "gateway", loopback(t, 1), program, "gateway", "--data", filepath.Join(t.TempDir(), "data"))
			gateway.start()
			beside := addHonest(t, gateway)
			before := heapInUse(t, gateway)
			must(t, "POST", gateway.url+"/api/gateway/projects", map[string]string{"name": "changing", "url": changing.URL}, nil)

			ctx, cancel := context.WithTimeout(t.Context(), changingTime)
			var reading sync.WaitGroup
			for _, path := range readers {
				reading.Go(func() {
					for ctx.Err() == nil {
						read(t, gateway.url+path)
					}
				})
			}
			took := lookBeside(ctx, t, gateway, beside)
			reading.Wait()
			cancel()
			t.Logf("beside it: median %v, 99 of 100 within %v, at most %v, of %d", took[len(took)/2].Round(time.Millisecond),
				took[len(took)*99/100].Round(time.Millisecond), took[len(took)-1].Round(time.Millisecond), len(took))
			if most := took[len(took)*99/100]; most > fastMost {
				t.Errorf("99 of 100 answers within %v", most)
			}
			began := time.Now()
			must(t, "DELETE", gateway.url+"/api/gateway/projects/changing", nil, nil)
			removal := time.Since(began)
			peak := gateway.memory("VmHWM:")
			t.Logf("%.0f MiB at most, %d fetches; removed in %v", peak, board.fetches.Load(), removal.Round(time.Millisecond))
			if peak > maxResident {
				t.Errorf("the gateway took %.0f MiB", peak)
			}
			if removal > removalLimit {
				t.Errorf("the removal took %v", removal)
			}
			var after float64
			if !until(late, func() bool { after = heapInUse(t, gateway); return after < before+12 }) {
				t.Errorf("after the removal %.0f MiB are in use, before the project was added %.0f", after, before)
			}
		})
	}
}

// addHonest registers well-behaved projects.
func addHonest(t *testing.T, gateway *server) (all []*honest) {
	for i := range honestProjects {
		h := &honest{news: make(chan struct{})}
		web := httptest.NewServer(h)
		t.Cleanup(func() { web.CloseClientConnections(); web.Close() })
		must(t, "POST", gateway.url+"/api/gateway/projects", map[string]string{"name": fmt.Sprint("honest-", i), "url": web.URL}, nil)
		all = append(all, h)
	}
	return all
}

// lookBeside returns how long answers about honest projects take until ctx ends, sorted.
func lookBeside(ctx context.Context, t *testing.T, gateway *server, all []*honest) (took []time.Duration) {
	for n := 0; ctx.Err() == nil; n++ {
		i := n % len(all)
		for _, path := range []string{"/agents", fmt.Sprint("/projects/honest-", i), "/api/gateway/attention", "/api/gateway"} {
			began := time.Now()
			read(t, gateway.url+path)
			took = append(took, time.Since(began))
		}
		pause(ctx, 20*time.Millisecond)
	}
	slices.Sort(took)
	return took
}

// heapInUse returns the gateway's heap in MiB.
func heapInUse(t *testing.T, gateway *server) float64 {
	for range 20 { // lets the garbage collector run
		must(t, "GET", gateway.url+"/api/gateway/events?limit=1000", nil, nil)
		must(t, "GET", gateway.url+"/api/gateway/pipeline", nil, nil)
	}
	return metric(t, gateway.url, "go_memstats_heap_inuse_bytes") / (1 << 20)
}
