package web

import (
	"context"
	"net/http"
	"sync"

	"switchyard/internal/domain"
)

const (
	// maxHeld is how many calls are held at a time, maxHeldByCaller how many of one caller. Heartbeats do not count: an
	// agent has one. A held call takes less than 32 KiB.
	maxHeld         = 1024
	maxHeldByCaller = 64
)

// HeldCalls counts the calls whose answer waits for something. The zero value is ready for use.
type HeldCalls struct {
	mu       sync.Mutex
	all      int
	byCaller map[string]int
}

// Hold counts a call of the request's caller until release is called, and returns the context to wait with
// (LongPollContext). It returns RateLimited when too many are held.
func (h *HeldCalls) Hold(r *http.Request) (ctx context.Context, release func(), err error) {
	caller := InfoOf(r.Context()).Caller
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.byCaller[caller] >= maxHeldByCaller:
		return nil, nil, domain.Errorf(domain.RateLimited,
			"you hold %d calls that wait; one more has to wait for one of them to end", maxHeldByCaller)
	case h.all >= maxHeld:
		return nil, nil, domain.Errorf(domain.RateLimited, "%d calls that wait are held here; try again when some have ended",
			maxHeld)
	}
	if h.byCaller == nil {
		h.byCaller = map[string]int{}
	}
	h.all++
	h.byCaller[caller]++
	ctx, cancel := LongPollContext(r)
	return ctx, func() {
		cancel()
		h.mu.Lock()
		defer h.mu.Unlock()
		h.all--
		if h.byCaller[caller]--; h.byCaller[caller] == 0 {
			delete(h.byCaller, caller)
		}
	}, nil
}
