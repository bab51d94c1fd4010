package service

import (
	"log/slog"
	"sync"
	"time"

	"switchyard/internal/supervise"
)

const (
	// fetchSlots is how many projects are fetched at once; more would only wait for each other. At most behindSlots of
	// them are for projects that nobody waits for.
	fetchSlots, behindSlots = 64, 8
	// slowFetch is the time after which a fetch no longer holds its slot: it waits for the network.
	slowFetch = 10 * time.Millisecond
)

type turn int

const (
	turnFirst  turn = iota // a page shows this project alone
	turnNext               // somebody waits for it, among others
	turnBehind             // nobody does
)

// fetch is given a function to call when it no longer waits but computes: it then keeps its slot, so that the number of
// slots limits how many compute.
type fetch func(keepSlot func() bool)

// fetchQueue runs fetches in a fixed number of slots.
type fetchQueue struct {
	log *slog.Logger

	mu           sync.Mutex
	next, behind []fetch
	busy, lesser int // slots in use, and how many of them by fetches that nobody waits for
}

func (q *fetchQueue) add(f fetch, t turn) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch t {
	case turnFirst:
		q.next = append([]fetch{f}, q.next...)
	case turnNext:
		q.next = append(q.next, f)
	case turnBehind:
		q.behind = append(q.behind, f)
	}
	q.fill()
}

// fill uses free slots. The caller holds mu.
func (q *fetchQueue) fill() {
	for q.busy < fetchSlots {
		from, slots := &q.next, new(int)
		if len(q.next) == 0 {
			from, slots = &q.behind, &q.lesser
		}
		if len(*from) == 0 || *slots == behindSlots {
			return
		}
		f := (*from)[0]
		(*from)[0] = nil
		if *from = (*from)[1:]; len(*from) == 0 {
			*from = nil // frees the underlying array
		}
		q.busy++
		*slots++
		supervise.Go(q.log, "pipelines", func() { q.run(f, func() { q.busy--; *slots-- }) })
	}
}

// run runs a fetch. One that is slow gives its slot to another.
func (q *fetchQueue) run(f fetch, release func()) {
	free := sync.OnceFunc(func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		release()
		q.fill()
	})
	defer free()
	slow := time.AfterFunc(slowFetch, free)
	defer slow.Stop()
	f(slow.Stop)
}
