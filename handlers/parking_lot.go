package handlers

import (
	"net"
	"sync"
	"syscall"
	"time"
)

// parkedLook is the time between two looks whether the clients of parked requests are still there.
const parkedLook = 5 * time.Second

// parkingLot knows the requests of a server that are parked. It looks after them together: a timer each would wake the
// process all the time.
type parkingLot struct {
	answering sync.WaitGroup

	mu      sync.Mutex
	taken   map[*parked]struct{}
	looking bool // a look is due
	ended   bool // nobody waits any more
}

func (l *parkingLot) enter(p *parked) {
	l.answering.Add(1)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		p.end()
	}
	l.taken[p] = struct{}{}
	l.lookLater()
}

func (l *parkingLot) leave(p *parked) {
	p.end()
	l.mu.Lock()
	delete(l.taken, p)
	l.mu.Unlock()
	l.answering.Done()
}

// endAll has every request answered now, and those that are still to come.
func (l *parkingLot) endAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	for p := range l.taken {
		p.end()
	}
}

func (l *parkingLot) lookLater() {
	if !l.looking && len(l.taken) > 0 {
		l.looking = true
		time.AfterFunc(parkedLook, l.look)
	}
}

// look ends the requests whose clients are gone, again and again while there are any.
func (l *parkingLot) look() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for p := range l.taken {
		if isClosed(p.Conn) {
			p.end()
		}
	}
	l.looking = false
	l.lookLater()
}

// isClosed reports whether the other side has ended the connection. It takes nothing from it. Of connections that do not
// say, the end shows when they are answered.
func isClosed(conn net.Conn) (closed bool) {
	plain, ok := conn.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := plain.SyscallConn()
	if err != nil {
		return true
	}
	err = raw.Read(func(fd uintptr) bool {
		var b [1]byte
		n, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		closed = n == 0 && err == nil || err != nil && err != syscall.EAGAIN && err != syscall.EINTR
		return true
	})
	return closed || err != nil
}
