package web

import (
	"net"
	"net/http"
	"sync"
)

// headSize is the size of net/http's write buffer, in bytes: a larger answer takes it two writes, the first of this size.
const headSize = 4 << 10

// heads are buffers for the first writes.
var heads = sync.Pool{New: func() any { return new([headSize]byte) }}

// JoinWrites returns a listener whose connections can send both writes of a large answer as one. Otherwise the client
// wakes up for the first 4 KiB, which takes a sixth of the CPU time of 90 kB (make bench, "feed of 500 events").
func JoinWrites(listener net.Listener) net.Listener { return joiningListener{listener} }

type joiningListener struct{ net.Listener }

func (l joiningListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if tcp, ok := conn.(*net.TCPConn); ok {
		return &joiningConn{TCPConn: tcp}, err
	}
	return conn, err
}

// joiningConn keeps a write that more is about to follow, and sends both together. Only one goroutine writes at a time.
type joiningConn struct {
	*net.TCPConn
	join    bool            // a large piece of an answer is being written
	head    *[headSize]byte // what is kept, nil for nothing
	pieces  [2][]byte
	buffers net.Buffers
}

func (c *joiningConn) Write(p []byte) (int, error) {
	if c.join && c.head == nil && len(p) == headSize { // the buffer was full, and the rest of the piece follows
		c.join, c.head = false, heads.Get().(*[headSize]byte)
		return copy(c.head[:], p), nil
	}
	if c.head == nil {
		return c.TCPConn.Write(p)
	}
	c.pieces = [2][]byte{c.head[:], p}
	c.buffers = c.pieces[:]
	n, err := c.buffers.WriteTo(c.TCPConn)
	heads.Put(c.head)
	c.head = nil
	return max(int(n)-headSize, 0), err
}

// writeLarge writes a piece of an answer that is larger than net/http's buffer.
func writeLarge(w http.ResponseWriter, r *http.Request, b []byte) (int, error) {
	entry, _ := r.Context().Value(connectionKey{}).(*connection)
	if entry == nil {
		return w.Write(b)
	}
	conn, ok := entry.conn.(*joiningConn)
	if !ok {
		return w.Write(b)
	}
	conn.join = true
	n, err := w.Write(b)
	conn.join = false // nothing was sent, as for HEAD, or it all went in one write
	return n, err
}
