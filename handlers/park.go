package handlers

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"runtime/debug"
	"syscall"
	"time"
)

// A request that is held costs a server about 40 kB: the stacks under all the middleware, the buffers of its connection,
// the request itself. Thousands of agents hold one each. So their requests are parked: the connection is taken from the
// server, waits with little around it, and is given back after the answer.

const (
	// parkFrom is the shortest wait for which parking is worth its work.
	parkFrom = time.Second
	// parkedLook is the time between two looks whether the client of a parked request is still there.
	parkedLook = 5 * time.Second
	// parkedWrite is how long writing the answer of a parked request may take.
	parkedWrite = 10 * time.Second
)

// parked is the connection of a request that waits for its answer.
type parked struct {
	net.Conn
	raw    syscall.RawConn
	server *http.Server
	header http.Header     // of the answer
	last   context.Context // ends when the server is about to stop, nil where nobody says
	ahead  []byte          // what the server had read of the next request
}

// park has h answer the request later, off this goroutine, and reports whether it does: only the plain connection of an
// HTTP/1.1 server can be parked. Nobody may use w and r after that. The request that h gets has of r its method, address
// and id; its context ends when the client is gone, or the server is about to stop.
func (e errorWriter) park(w http.ResponseWriter, r *http.Request, form errorForm, h handlerFunc) bool {
	server, ok := r.Context().Value(http.ServerContextKey).(*http.Server)
	if !ok || r.TLS != nil || r.ProtoMajor != 1 || r.ProtoMinor != 1 || r.Close {
		return false
	}
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return false
	}
	p := &parked{Conn: conn, server: server, header: w.Header().Clone(), last: stoppingOf(r)}
	if plain, ok := conn.(syscall.Conn); ok {
		p.raw, _ = plain.SyscallConn() // without it the end of the client shows when it is answered
	}
	if n := buffered.Reader.Buffered(); n > 0 {
		p.ahead = make([]byte, n)
		_, _ = io.ReadFull(buffered, p.ahead) // it is in memory already
	}
	ctx, end := context.WithCancel(&visit{Context: context.Background(), id: requestID(r.Context())})
	if p.last != nil {
		cancel, forget := end, context.AfterFunc(p.last, end)
		end = func() { forget(); cancel() }
	}
	time.AfterFunc(parkedLook, func() { p.watch(ctx, end) })
	go p.answer((&http.Request{Method: r.Method, URL: r.URL}).WithContext(ctx), end, e, form, h)
	return true
}

// watch looks again and again whether the client is there, until ctx ends.
func (p *parked) watch(ctx context.Context, end context.CancelFunc) {
	switch {
	case ctx.Err() != nil:
	case p.raw != nil && isClosed(p.raw):
		end()
	default:
		time.AfterFunc(parkedLook, func() { p.watch(ctx, end) })
	}
}

// isClosed reports whether the other side has ended the connection. It takes nothing from it.
func isClosed(conn syscall.RawConn) (closed bool) {
	err := conn.Read(func(fd uintptr) bool {
		var b [1]byte
		n, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		closed = n == 0 && err == nil || err != nil && err != syscall.EAGAIN && err != syscall.EINTR
		return true
	})
	return closed || err != nil
}

// answer waits for h, writes what it says and gives the connection back.
func (p *parked) answer(r *http.Request, end context.CancelFunc, e errorWriter, form errorForm, h handlerFunc) {
	defer end()
	defer func() {
		if cause := recover(); cause != nil {
			p.Close()
			e.log.Error("panic", "id", requestID(r.Context()), "method", r.Method, "path", r.URL.Path, "cause", cause, "stack", string(debug.Stack()))
		}
	}()
	answer := &laterAnswer{header: p.header, status: http.StatusOK}
	e.api(form, h)(answer, r)
	last := p.last != nil && p.last.Err() != nil
	if err := p.write(answer, last); err != nil || last {
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
	status int
	body   bytes.Buffer
}

func (a *laterAnswer) Header() http.Header         { return a.header }
func (a *laterAnswer) WriteHeader(status int)      { a.status = status }
func (a *laterAnswer) Write(b []byte) (int, error) { return a.body.Write(b) }

// Hijack lets a request be parked. It is counted as answered well, which it nearly always is.
func (w *observedWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	w.status = http.StatusOK
	return http.NewResponseController(w.ResponseWriter).Hijack()
}
