package handlers

import (
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"time"
)

const (
	// maxWrong is how many wrong tokens an address may give within wrongWindow; then every token from there is refused
	// until the window, which begins with the first wrong one, is over.
	maxWrong    = 20
	wrongWindow = time.Minute
	// maxWindows bounds the addresses that are kept in mind, at about 100 bytes each.
	maxWindows = 1 << 16
)

// caller is an address from which tokens come: an IPv4 address, or the /64 that somebody has of IPv6.
type caller = netip.Prefix

// callerOf returns who made the request. It does not believe what proxies say: anyone could say it.
func callerOf(r *http.Request) caller {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return caller{}
	}
	ip := from.Addr().Unmap().WithZone("")
	bits := 64
	if ip.Is4() {
		bits = 32
	}
	prefix, err := ip.Prefix(bits)
	if err != nil {
		return caller{}
	}
	return prefix
}

// verdict is what is said of a token.
type verdict int

const (
	tokenRight verdict = iota
	tokenWrong
	tooManyWrong // right or wrong
)

// wrongTokens counts wrong tokens by caller. The zero value is ready for use.
type wrongTokens struct {
	mu      sync.Mutex
	windows map[caller]*window
}

type window struct {
	began time.Time
	wrong int
}

func (w *window) over() bool { return time.Since(w.began) >= wrongWindow }

// judge returns the verdict on a token, and counts a wrong one. A right one resets nothing.
func (t *wrongTokens) judge(from caller, right bool) verdict {
	t.mu.Lock()
	defer t.mu.Unlock()
	current := t.current(from)
	switch {
	case current != nil && current.wrong >= maxWrong:
		return tooManyWrong
	case right:
		return tokenRight
	case current != nil:
		current.wrong++
	default:
		t.begin(from)
	}
	return tokenWrong
}

// exceeded reports whether tokens of the caller are refused unseen.
func (t *wrongTokens) exceeded(from caller) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	current := t.current(from)
	return current != nil && current.wrong >= maxWrong
}

// retryAfter is the time until the caller's window is over, in whole seconds and at least one.
func (t *wrongTokens) retryAfter(from caller) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	left := time.Duration(0)
	if current := t.current(from); current != nil {
		left = wrongWindow - time.Since(current.began)
	}
	return strconv.Itoa(max(1, int((left+time.Second-1)/time.Second)))
}

// current returns the caller's window, nil when there is none. Callers hold mu.
func (t *wrongTokens) current(from caller) *window {
	w := t.windows[from]
	if w == nil || w.over() {
		return nil
	}
	return w
}

// begin begins a window with the first wrong token. Callers hold mu.
func (t *wrongTokens) begin(from caller) {
	if t.windows == nil {
		t.windows = map[caller]*window{}
	}
	if len(t.windows) >= maxWindows {
		t.makeRoom()
	}
	t.windows[from] = &window{time.Now(), 1}
}

// makeRoom forgets the windows that are over, and if there are none, any one.
func (t *wrongTokens) makeRoom() {
	for from, w := range t.windows {
		if w.over() {
			delete(t.windows, from)
		}
	}
	for from := range t.windows {
		if len(t.windows) < maxWindows {
			break
		}
		delete(t.windows, from)
	}
}
