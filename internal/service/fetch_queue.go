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
	// slowFetch is the time after which a fetch no longer holds its slot: it waits for the network, and must not keep
	// others from running.
	slowFetch = 10 * time.Millisecond
)

type turn int

const (
	turnFirst  turn = iota // a page shows this project alone
	turnNext               // somebody waits for it, among others
	turnBehind             // nobody does
)

// fetchQueue runs fetches in a fixed number of slots.
type fetchQueue struct {
	log *slog.Logger

	mu           sync.Mutex
	next, behind []func()
	busy, lesser int // slots in use, and how many of these for fetches that nobody waits for
}

func (q *fetchQueue) add(fetch func(), t turn) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch t {
	case turnFirst:
		q.next = append([]func(){fetch}, q.next...)
	case turnNext:
		q.next = append(q.next, fetch)
	case turnBehind:
		q.behind = append(q.behind, fetch)
	}
	q.fill()
}

// fill uses free slots. The caller holds mu.
func (q *fetchQueue) fill() {
	for q.busy < fetchSlots {
		fetch, release := q.pop()
		if fetch == nil {
			return
		}
		supervise.Go(q.log, "pipelines", func() { q.work(fetch, release) })
	}
}

// pop takes a slot for the next fetch, if there is one. The caller holds mu.
func (q *fetchQueue) pop() (fetch, release func()) {
	from, slots := &q.next, new(int)
	if len(q.next) == 0 {
		if from, slots = &q.behind, &q.lesser; q.lesser == behindSlots {
			return nil, nil
		}
	}
	if len(*from) == 0 {
		return nil, nil
	}
	fetch, (*from)[0] = (*from)[0], nil
	if *from = (*from)[1:]; len(*from) == 0 {
		*from = nil // frees the underlying array
	}
	q.busy++
	*slots++
	return fetch, func() { q.busy--; *slots-- }
}

// work runs fetches one after the other until one was so slow that its slot has been given to another, or there are
// none. A goroutine for each would cost more, since each stack has to grow (make bench, "fresh pipeline of 1,000
// projects").
func (q *fetchQueue) work(fetch, release func()) {
	for fetch != nil {
		slow := time.AfterFunc(slowFetch, func() { q.release(release) })
		err := supervise.Call(func() error { fetch(); return nil })
		if err != nil {
			q.log.Error("a fetch failed", "error", err)
		}
		if !slow.Stop() {
			return
		}
		q.mu.Lock()
		release()
		if fetch, release = nil, nil; q.busy < fetchSlots {
			fetch, release = q.pop()
		}
		q.mu.Unlock()
	}
}

func (q *fetchQueue) release(release func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	release()
	q.fill()
}
