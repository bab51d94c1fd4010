//go:build stress

package stress

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// wire stands between a gateway and PostgreSQL or project servers, and can be cut.
type wire struct {
	t        *testing.T
	listener *net.TCPListener
	target   string

	mu       sync.Mutex
	swallows bool
	rate     int               // bytes a second of each connection in each direction, 0 for no limit
	delay    time.Duration     // of all data in each direction
	refused  int               // the process whose connections are refused, 0 for none
	healed   chan struct{}     // closed when it no longer does
	ends     map[net.Conn]bool // of all connections, both ends
}

func newWire(t *testing.T, address, target string) *wire {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{t: t, listener: listener.(*net.TCPListener), target: target, ends: map[net.Conn]bool{}}
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
		w.mu.Lock()
		healed, refused := w.healed, w.refused
		w.mu.Unlock()
		if refused != 0 && isOf(near, refused) {
			near.Close()
			continue
		}
		if healed != nil {
			<-healed
			near.Close()
			continue
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

// pass forwards data, unless it is swallowed, until either end closes.
func (w *wire) pass(from, to net.Conn) {
	defer func() {
		from.Close()
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.ends, from)
	}()
	line := make(chan parcel, 16)
	defer close(line)
	go func() {
		for p := range line {
			time.Sleep(time.Until(p.due))
			if _, err := (throat{w, to}).Write(p.data); err != nil {
				from.Close()
			}
		}
		to.Close()
	}()
	for buffer := make([]byte, 32<<10); ; {
		n, err := from.Read(buffer)
		w.mu.Lock()
		due := time.Now().Add(w.delay)
		w.mu.Unlock()
		line <- parcel{bytes.Clone(buffer[:n]), due}
		if err != nil {
			return
		}
	}
}

// parcel is data under way: what follows it does not wait for it, as on a long line.
type parcel struct {
	data []byte
	due  time.Time
}

// throat forwards data or swallows it.
type throat struct {
	*wire
	to net.Conn
}

func (t throat) Write(p []byte) (int, error) {
	t.mu.Lock()
	swallows, rate := t.swallows, t.rate
	t.mu.Unlock()
	if swallows {
		return len(p), nil
	}
	if rate > 0 {
		for part := range slices.Chunk(p, max(1, rate/20)) {
			if _, err := t.to.Write(part); err != nil {
				return 0, err
			}
			time.Sleep(time.Second * time.Duration(len(part)) / time.Duration(rate))
		}
		return len(p), nil
	}
	return t.to.Write(p)
}

// throttle limits each connection to a number of bytes a second in each direction, 0 for no limit.
func (w *wire) throttle(rate int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rate = rate
}

// slow delays all data by half of this round trip in each direction.
func (w *wire) slow(roundTrip time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.delay = roundTrip / 2
}

// refuse ends the connections of all, and refuses new ones of one process, 0 for none.
func (w *wire) refuse(pid int) {
	w.mu.Lock()
	w.refused = pid
	w.mu.Unlock()
	w.reset()
}

// isOf reports whether the other end of a local connection belongs to a process.
func isOf(conn net.Conn, pid int) bool {
	table, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		return false
	}
	end := fmt.Sprintf(":%04X", conn.RemoteAddr().(*net.TCPAddr).Port)
	for line := range strings.Lines(string(table)) {
		// number, local address, remote address, …, inode; see proc(5)
		fields := strings.Fields(line)
		if len(fields) < 10 || !strings.HasSuffix(fields[1], end) {
			continue
		}
		files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
		for _, file := range files {
			if target, _ := os.Readlink(file); target == "socket:["+fields[9]+"]" {
				return true
			}
		}
	}
	return false
}

// blackhole swallows all data in either direction from now on: connections stay open without a response, and new connections do not
// succeed.
func (w *wire) blackhole() {
	w.t.Helper()
	w.mu.Lock()
	w.swallows, w.healed = true, make(chan struct{})
	w.mu.Unlock()
	w.queue(0)
	// Connections are no longer accepted. Once the queue is full, the kernel drops the packets that would open one.
	for range 10 {
		filler, err := net.DialTimeout("tcp", w.listener.Addr().String(), 100*time.Millisecond)
		if err != nil {
			return
		}
		defer filler.Close()
	}
	w.t.Error("connections through a dead wire are still made")
}

// queue sets how many connections wait to be accepted.
func (w *wire) queue(length int) {
	raw, err := w.listener.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) {
			if err := syscall.Listen(int(fd), length); err != nil {
				w.t.Error(err)
			}
		})
	}
	if err != nil {
		w.t.Error(err)
	}
}

// heal forwards everything again. Connections that have lost data are reset.
func (w *wire) heal() {
	w.queue(syscall.SOMAXCONN)
	w.mu.Lock()
	w.swallows = false
	close(w.healed)
	w.healed = nil
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
