package service

import (
	"sync"

	"switchyard/internal/domain"
)

// Bounds of the pages that are kept.
const (
	keptPages     = 32
	keptPageBytes = 256 << 10
)

// newestPages keeps the newest pages that the store was searched for. Pages that refresh themselves ask for the same again
// and again, and until an event is added the answer stays the same: a search through a million events takes half a second.
type newestPages struct {
	mu    sync.Mutex
	last  int64 // the id of the newest event when they were found
	pages map[domain.EventQuery]domain.EventPage
}

// find returns what is kept for q while the newest event has the id last.
func (n *newestPages) find(q domain.EventQuery, last int64) (domain.EventPage, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.last != last {
		return domain.EventPage{}, false
	}
	page, ok := n.pages[q]
	return page, ok
}

// keep keeps the page that q selected after the event with the id last was added, unless it is huge.
func (n *newestPages) keep(q domain.EventQuery, last int64, page domain.EventPage) {
	bytes := 0
	for _, e := range page.Events {
		bytes += len(e.JSON)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if bytes > keptPageBytes || last < n.last {
		return
	}
	if n.pages == nil || n.last != last || len(n.pages) >= keptPages {
		n.last, n.pages = last, map[domain.EventQuery]domain.EventPage{}
	}
	n.pages[q] = page
}

// forget makes the pages be searched again.
func (n *newestPages) forget() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.pages = nil
}
