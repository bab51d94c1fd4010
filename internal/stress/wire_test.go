//go:build stress

package stress

import (
	"io"
	"net"
	"sync"
	"testing"
)

// wire stands between a gateway and PostgreSQL, and can be cut.
type wire struct {
	t        *testing.T
	listener net.Listener
	target   string

	mu       sync.Mutex
	swallows bool
	ends     map[net.Conn]bool // of all connections, both ends
}

func newWire(t *testing.T, address, target string) *wire {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{t: t, listener: listener, target: target, ends: map[net.Conn]bool{}}
	go w.accept()
	t.Cleanup(func() {
		listener.Close()
		w.reset()
	})
	return w
}

func (w *wire) accept() {
	for {
		near, err := w.listener.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", w.target)
		if err != nil { // PostgreSQL is gone
			near.Close()
			continue
		}
		w.mu.Lock()
		w.ends[near], w.ends[far] = true, true
		w.mu.Unlock()
		go w.pass(near, far)
		go w.pass(far, near)
	}
}

// pass passes on what comes, unless it is swallowed, until either end closes.
func (w *wire) pass(from, to net.Conn) {
	defer func() {
		from.Close()
		to.Close()
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.ends, from)
	}()
	_, _ = io.Copy(throat{w, to}, from)
}

// throat is where what was read goes on, or not.
type throat struct {
	*wire
	to net.Conn
}

func (t throat) Write(p []byte) (int, error) {
	t.mu.Lock()
	swallows := t.swallows
	t.mu.Unlock()
	if swallows {
		return len(p), nil
	}
	return t.to.Write(p)
}

// blackhole swallows all that is sent in either direction from now on: connections stay open, and no answer comes.
func (w *wire) blackhole() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.swallows = true
}

// heal passes everything on again. What was open meanwhile has lost bytes, and is reset.
func (w *wire) heal() {
	w.mu.Lock()
	w.swallows = false
	w.mu.Unlock()
	w.reset()
}

func (w *wire) reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for end := range w.ends {
		end.Close()
	}
}
