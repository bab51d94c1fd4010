package handlers

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"time"
)

// A request that is held costs a server about 40 kB: the stacks under all the middleware, the buffers of its connection,
// the request itself. Thousands of agents hold one each. So their requests are parked: the connection is taken from the
// server, waits with little around it, and is given back after the answer.

const (
	// parkFrom is the shortest wait for which parking is worth its work.
	parkFrom = time.Second
	// parkedWrite is how long writing the answer of a parked request may take.
	parkedWrite = 10 * time.Second
)

// parked is the connection of a request that waits for its answer.
type parked struct {
	net.Conn
	server *http.Server
	drain  *Drain
	end    context.CancelFunc // of the request's context
	header http.Header        // of the answer
	sight  sight
	ahead  []byte // what the server had read of the next request
}

// park has h answer the request later, off this goroutine, and reports whether it does: only the plain connection of an
// HTTP/1.1 server that has a Drain can be parked. Nobody may use w and r after that. The request that h gets has of r its
// method, address and id; its context ends when the client is gone, or the server is about to stop.
func (g *gateway) park(w http.ResponseWriter, r *http.Request, form errorForm, h handlerFunc) bool {
	server, ok := r.Context().Value(http.ServerContextKey).(*http.Server)
	drain := drainOf(r)
	if !ok || drain == nil || r.TLS != nil || r.ProtoMajor != 1 || r.ProtoMinor != 1 || r.Close {
		return false
	}
	v := visitOf(r.Context())
	p := &parked{server: server, drain: drain, header: w.Header().Clone(), sight: v.see(r)}
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return false
	}
	v.parked, p.Conn = true, conn
	if n := buffered.Reader.Buffered(); n > 0 {
		p.ahead = make([]byte, n)
		_, _ = io.ReadFull(buffered, p.ahead) // it is in memory already
	}
	ctx, end := context.WithCancel(&laterVisit{context.Background(), v.id[0]})
	p.end = end
	drain.parked.enter(p)
	go g.answerLater(p, (&http.Request{Method: r.Method, URL: r.URL}).WithContext(ctx), form, h)
	return true
}

// answerLater waits for h, writes what it says and gives the connection back.
func (g *gateway) answerLater(p *parked, r *http.Request, form errorForm, h handlerFunc) {
	defer p.drain.parked.leave(p)
	answer := &laterAnswer{header: p.header}
	rescue(g.Log, g.api(form, h)).ServeHTTP(answer, r)
	last := p.drain.stopping.Err() != nil
	err := p.write(answer, last)
	g.count(p.sight, answer.status, int64(answer.body.Len()))
	if err != nil || last {
		p.Close()
		return
	}
	p.giveBack()
}

func (p *parked) write(a *laterAnswer, last bool) error {
	a.header.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	response := http.Response{
		StatusCode: a.status, ProtoMajor: 1, ProtoMinor: 1, Header: a.header, Close: last,
		Body: io.NopCloser(&a.body), ContentLength: int64(a.body.Len()),
	}
	var whole bytes.Buffer
	if err := response.Write(&whole); err != nil {
		return err
	}
	if err := p.SetWriteDeadline(time.Now().Add(parkedWrite)); err != nil {
		return err
	}
	if _, err := p.Write(whole.Bytes()); err != nil {
		return err
	}
	return p.SetWriteDeadline(time.Time{})
}

// giveBack has the server read the next request of the connection.
func (p *parked) giveBack() {
	listener := &parkedListener{conn: p.Conn}
	if len(p.ahead) > 0 {
		listener.conn = p
	}
	_ = p.server.Serve(listener) // returns at once, with the error of the second Accept
	if listener.conn != nil {    // the server is shutting down
		p.Close()
	}
}

// Read gives first what was read ahead.
func (p *parked) Read(b []byte) (int, error) {
	if len(p.ahead) > 0 {
		n := copy(b, p.ahead)
		p.ahead = p.ahead[n:]
		return n, nil
	}
	return p.Conn.Read(b)
}

// parkedListener accepts one connection.
type parkedListener struct{ conn net.Conn }

func (l *parkedListener) Accept() (net.Conn, error) {
	if l.conn == nil {
		return nil, net.ErrClosed
	}
	conn := l.conn
	l.conn = nil
	return conn, nil
}

func (l *parkedListener) Close() error   { return nil }
func (l *parkedListener) Addr() net.Addr { return &net.TCPAddr{} }

// laterAnswer keeps what a handler writes.
type laterAnswer struct {
	header http.Header
	status int // 0 until the header is written
	body   bytes.Buffer
}

func (a *laterAnswer) Header() http.Header         { return a.header }
func (a *laterAnswer) WriteHeader(status int)      { a.status = status }
func (a *laterAnswer) Write(b []byte) (int, error) { return a.body.Write(b) }

// laterVisit is the context of a parked request, in which its id is found: a whole visit would be ten times as large.
type laterVisit struct {
	context.Context
	id string
}

func (v *laterVisit) Value(key any) any {
	if key == (visitKey{}) {
		return &visit{Context: v.Context, id: [1]string{v.id}}
	}
	return v.Context.Value(key)
}
