//go:build stress

package stress

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// watcher follows the merged stream at each gateway in turn, like a client behind a load balancer: with one position, and continuing
// at the next gateway when one does not respond.
type watcher struct {
	t *testing.T

	mu    sync.Mutex
	seen  map[string]int // events, by project
	last  map[string]time.Time
	quiet time.Duration // the longest silence of a project since forget
	asked int           // the number of responses
}

func newWatcher(t *testing.T, projects []*numbered) *watcher {
	w := &watcher{t: t, seen: map[string]int{}, last: map[string]time.Time{}}
	for _, p := range projects {
		w.last[p.name] = time.Now()
	}
	return w
}

// patience is how long to wait for a response before trying the next gateway.
const patience = 600 * time.Millisecond

func (w *watcher) run(ctx context.Context, members []*member) {
	impatient := http.Client{Timeout: patience}
	var after int64
	for turn := 0; ctx.Err() == nil; turn++ {
		var page struct {
			Events []event
			Next   int64
		}
		address := fmt.Sprintf("%s/api/gateway/events?limit=1000&wait=300ms&after=%d", members[turn%len(members)].url, after)
		if status, err := callBy(ctx, &impatient, http.MethodGet, address, "", nil, &page); err != nil || status != http.StatusOK {
			pause(ctx, 10*time.Millisecond)
			continue
		}
		w.mu.Lock()
		w.asked++
		for _, e := range page.Events {
			if e.ID <= after {
				w.t.Errorf("event %d came after %d", e.ID, after)
			}
			after = e.ID
			w.take(e)
		}
		w.mu.Unlock()
	}
}

func (w *watcher) take(e event) {
	if number, _ := strconv.Atoi(e.StoryID); e.Type != "stage_transition" || number != w.seen[e.Project] {
		w.t.Errorf("%s: %s %s came where number %d was due", e.Project, e.Type, e.StoryID, w.seen[e.Project])
	}
	w.seen[e.Project]++
	now := time.Now()
	w.quiet = max(w.quiet, now.Sub(w.last[e.Project]))
	w.last[e.Project] = now
}

// silence returns the longest silence of a project since the last call.
func (w *watcher) silence() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	longest := w.quiet
	for project, last := range w.last {
		longest = max(longest, time.Since(last))
		w.last[project] = time.Now()
	}
	w.quiet = 0
	return longest
}

// has reports whether at least so many events of each project have been seen.
func (w *watcher) has(counts map[string]int) bool { return w.missing(counts) == "" }

// missing describes the projects whose events have not all been seen.
func (w *watcher) missing(counts map[string]int) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var missing []string
	for project, count := range counts {
		if seen := w.seen[project]; seen < count {
			missing = append(missing, fmt.Sprintf("%s has %d of %d", project, seen, count))
		}
	}
	return strings.Join(missing, ", ")
}
