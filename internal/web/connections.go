package web

import (
	"container/ring"
	"context"
	"net"
	"net/http"
	"sync"
)

// Connections bounds the connections of a process, so that strangers cannot use up its descriptors. One too many closes
// another: first the stranger's that has waited longest for a request, then the stranger's whose request takes longest,
// then an idle one of a known caller. If all are busy with known callers' requests, the new one is closed.
type Connections struct {
	max int

	mu   sync.Mutex
	open map[net.Conn]*connection
	// Heads of the rings of those that may be closed, the first to be closed first.
	waitingStrangers, servedStrangers, idleKnown *ring.Ring
}

type connection struct {
	conn  net.Conn
	known bool       // a request on it came with a session, a token or an agent's secret
	link  *ring.Ring // in the ring of its queue, alone in none
	owner *Connections
}

func NewConnections(limit int) *Connections {
	return &Connections{
		max: limit, open: map[net.Conn]*connection{}, waitingStrangers: ring.New(1),
		servedStrangers: ring.New(1), idleKnown: ring.New(1),
	}
}

type connectionKey struct{}

// Context is for http.Server.ConnContext.
func (c *Connections) Context(ctx context.Context, conn net.Conn) context.Context {
	entry := &connection{conn: conn, link: ring.New(1), owner: c}
	entry.link.Value = entry
	c.mu.Lock()
	c.open[conn] = entry
	c.mu.Unlock()
	return context.WithValue(ctx, connectionKey{}, entry)
}

// KnownCaller notes that the caller of the request with this context has identified itself.
func KnownCaller(ctx context.Context) {
	entry, ok := ctx.Value(connectionKey{}).(*connection)
	if !ok {
		return
	}
	c := entry.owner
	c.mu.Lock()
	defer c.mu.Unlock()
	if !entry.known {
		entry.known = true
		entry.enqueue(nil)
	}
}

func (c *Connections) Track(conn net.Conn, state http.ConnState) {
	if surplus := c.track(conn, state); surplus != nil {
		surplus.Close()
	}
}

// track returns the connection that is to be closed, nil for none.
func (c *Connections) track(conn net.Conn, state http.ConnState) (surplus net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	entry := c.open[conn]
	if entry == nil {
		return nil // already closed
	}
	switch {
	case state == http.StateClosed || state == http.StateHijacked:
		c.remove(entry)
	case state == http.StateActive && entry.known:
		entry.enqueue(nil)
	case state == http.StateActive:
		entry.enqueue(c.servedStrangers)
	case entry.known:
		entry.enqueue(c.idleKnown)
	default:
		if len(c.open) > c.max { // only a new one can be too many
			surplus = c.closeOne(entry)
		}
		if surplus != conn {
			entry.enqueue(c.waitingStrangers)
		}
	}
	return surplus
}

// closeOne removes the connection to be closed to make room for newcomer, which may be newcomer itself. Callers hold
// mu.
func (c *Connections) closeOne(newcomer *connection) net.Conn {
	victim := newcomer
	for _, queue := range []*ring.Ring{c.waitingStrangers, c.servedStrangers, c.idleKnown} {
		if first, ok := queue.Next().Value.(*connection); ok {
			victim = first
			break
		}
	}
	c.remove(victim)
	return victim.conn
}

func (c *Connections) remove(entry *connection) {
	entry.enqueue(nil)
	delete(c.open, entry.conn)
}

// enqueue moves the connection to the end of a queue, nil for none. It allocates nothing: every request does this
// twice.
func (e *connection) enqueue(queue *ring.Ring) {
	e.link.Prev().Unlink(1)
	if queue != nil {
		queue.Prev().Link(e.link)
	}
}
