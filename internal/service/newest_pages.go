package service

import (
	"slices"
	"strings"
	"sync"

	"switchyard/internal/domain"
	"switchyard/internal/fold"
)

// Limits of the cache of pages.
const (
	keptPages     = 32
	keptPageBytes = 256 << 10
)

// newestPages caches the newest page of each search. Browser pages repeat their searches to refresh: only the events added since
// are new, and those are in memory.
type newestPages struct {
	mu    sync.Mutex
	pages map[domain.EventQuery]newestPage
}

// newestPage is the result of a query at the time when last was the newest event's id.
type newestPage struct {
	domain.EventPage
	last int64
}

// find returns the current result of q, made from a cached page and the tail. It returns false if no page is cached.
func (n *newestPages) find(q domain.EventQuery, t *tail) (domain.EventPage, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	page, ok := n.pages[q]
	switch {
	case !ok || page.last < t.first:
		return domain.EventPage{}, false
	case page.last < t.last:
		after := page.last
		if len(page.Events) > 0 {
			after = max(after, page.Events[0].ID) // the store may have had more than the tail
		}
		page.Events, page.last = append(newer(q, t, after), page.Events...), t.last
		if len(page.Events) > q.Limit {
			page.Events, page.More = slices.Clone(page.Events[:q.Limit]), true
		}
		if pageBytes(page.EventPage) > keptPageBytes {
			delete(n.pages, q)
			return domain.EventPage{}, false
		}
		n.pages[q] = page
	}
	return page.EventPage, true
}

// newer returns the events in the tail that match q and are newer than the id after, newest first.
func newer(q domain.EventQuery, t *tail, after int64) (found []domain.Event) {
	text := fold.Text(q.Text)
	for _, e := range slices.Backward(t.events) {
		if e.ID <= after {
			break
		}
		if selects(q, e) && holds(e, text) {
			found = append(found, e)
		}
	}
	return found
}

// holds reports whether the project's name or one of the event's texts contains a folded text. The store uses the same rule.
func holds(e domain.Event, text string) bool {
	has := func(value string) bool { return strings.Contains(fold.Text(value), text) }
	return text == "" || has(e.Project) || slices.ContainsFunc(e.Texts(), has)
}

// keep caches the result of q at the time when last was the newest event's id, unless it is huge.
func (n *newestPages) keep(q domain.EventQuery, last int64, page domain.EventPage) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if pageBytes(page) > keptPageBytes || last < n.pages[q].last {
		return
	}
	if n.pages == nil || len(n.pages) >= keptPages {
		n.pages = map[domain.EventQuery]newestPage{}
	}
	n.pages[q] = newestPage{page, last}
}

// forget empties the cache.
func (n *newestPages) forget() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.pages = nil
}

func pageBytes(page domain.EventPage) (size int) {
	for _, e := range page.Events {
		size += len(e.JSON)
	}
	return size
}
