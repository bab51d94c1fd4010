package handlers

import (
	"maps"
	"net/netip"
	"strconv"
	"sync"
	"time"
)

const (
	// maxWrong is how many wrong tokens are accepted from an address within wrongWindow, which begins with the first of
	// them, before it is rate limited. Valid tokens are not counted and always accepted.
	maxWrong    = 20
	wrongWindow = time.Minute
	// maxWindows is the most addresses that are remembered, at about 100 bytes each.
	maxWindows = 1 << 16
)

// tokenLimiter counts wrong tokens by caller. The zero value is ready for use.
type tokenLimiter struct {
	mu      sync.Mutex
	windows map[netip.Prefix]window
}

type window struct {
	began time.Time
	wrong int
}

func (w window) over() bool { return time.Since(w.began) >= wrongWindow }

// count counts a wrong token. If it is one too many, it returns the time until the caller's window ends, in whole
// seconds, at least one.
func (t *tokenLimiter) count(from netip.Prefix) (retryAfter string, limited bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := t.windows[from]
	if w.over() {
		t.makeRoom()
		w = window{began: time.Now()}
	}
	w.wrong++
	t.windows[from] = w
	if w.wrong <= maxWrong {
		return "", false
	}
	left := wrongWindow - time.Since(w.began)
	return strconv.Itoa(max(1, int((left+time.Second-1)/time.Second))), true
}

// makeRoom removes windows that have ended or, if there are none, any one. Callers hold mu.
func (t *tokenLimiter) makeRoom() {
	if t.windows == nil {
		t.windows = map[netip.Prefix]window{}
	}
	if len(t.windows) >= maxWindows {
		maps.DeleteFunc(t.windows, func(_ netip.Prefix, w window) bool { return w.over() })
	}
	for from := range t.windows {
		if len(t.windows) < maxWindows {
			break
		}
		delete(t.windows, from)
	}
}
