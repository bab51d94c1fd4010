package service

import (
	"slices"
	"sort"
	"sync"
	"sync/atomic"

	"switchyard/internal/domain"
)

// Limits of the events in memory. Readers that keep up never need older ones.
const (
	tailEvents = 2048
	tailBytes  = 4 << 20
)

type tail struct {
	events   []domain.Event // all with an id above first, by increasing id
	first    int64
	last     int64
	bytes    int           // of the records
	outdated chan struct{} // closed when a newer tail is published
}

type newestTail struct {
	atomic.Pointer[tail]
	// publishing is held while the tail is replaced and while the events after it are read.
	publishing sync.Mutex
}

func newTail(last int64) *tail {
	return &tail{first: last, last: last, outdated: make(chan struct{})}
}

func (t *tail) shorten() {
	from := len(t.events)
	t.bytes = 0
	for from > 0 && len(t.events)-from < tailEvents/2 && t.bytes+len(t.events[from-1].JSON) <= tailBytes/2 {
		from--
		t.bytes += len(t.events[from].JSON)
	}
	if t.first = t.last; from < len(t.events) {
		t.first = t.events[from].ID - 1
	}
	t.events = slices.Clone(t.events[from:])
}

// find returns the events that match q. It returns false if some of them may be in the store only.
func (t *tail) find(q domain.EventQuery) (page domain.EventPage, ok bool) {
	if q.Text != "" || !q.Backward && q.After < t.first {
		return page, false
	}
	found := func(e domain.Event) (done bool) {
		if q.Project != "" && e.Project != q.Project || q.Type != "" && e.Type != q.Type || q.Finished && !q.Finishes(e) {
			return false
		}
		if len(page.Events) == q.Limit {
			page.More = true
			return true
		}
		page.Events = append(page.Events, e)
		return false
	}
	if !q.Backward {
		from := sort.Search(len(t.events), func(i int) bool { return t.events[i].ID > q.After })
		for _, e := range t.events[from:] {
			if found(e) {
				break
			}
		}
		return page, true
	}
	for _, e := range slices.Backward(t.events) {
		if (q.Before == 0 || e.ID < q.Before) && found(e) {
			return page, true
		}
	}
	return page, t.first == 0 // then all events are in memory
}

// skip makes the tail start over after the id last. Readers find the skipped events in the store. The caller holds
// publishing.
func (n *newestTail) skip(last int64) {
	old := n.Load()
	n.Store(newTail(last))
	close(old.outdated)
}

// show appends events to the tail and wakes waiting readers. The caller holds publishing.
func (n *newestTail) show(added []domain.Event) {
	if len(added) == 0 {
		return
	}
	old := n.Load()
	next := *old
	// The underlying array is shared with older tails, which do not read beyond their own length.
	next.events = append(next.events, added...)
	next.last = added[len(added)-1].ID
	for _, e := range added {
		next.bytes += len(e.JSON)
	}
	if len(next.events) > tailEvents || next.bytes > tailBytes {
		next.shorten()
	}
	next.outdated = make(chan struct{})
	n.Store(&next)
	close(old.outdated)
}

func (n *newestTail) forget(ids []int64) {
	n.publishing.Lock()
	defer n.publishing.Unlock()
	next := *n.Load()
	isRemoved := func(e domain.Event) bool {
		_, found := slices.BinarySearch(ids, e.ID)
		return found
	}
	if slices.ContainsFunc(next.events, isRemoved) {
		next.events = slices.DeleteFunc(slices.Clone(next.events), isRemoved) // next.bytes is now an upper bound
		n.Store(&next)
	}
}
