package upstream

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"sync"
	"time"
)

// plainConn is a connection to a project server, for one request at a time.
type plainConn struct {
	net.Conn
	pool      *plainConns
	address   string
	idleSince time.Time

	heard   bool // the server has begun to answer
	first   [1]byte
	pending int   // how many bytes of first are still unread
	allowed int64 // how many bytes may be read before the end of the header
}

var (
	errLargeHeader = errors.New("server response headers exceeded the limit")
	longAgo        = time.Unix(1, 0)
	readers        = sync.Pool{New: func() any { return bufio.NewReader(nil) }}
	writers        = sync.Pool{New: func() any { return bufio.NewWriter(nil) }}
)

// exchange sends the request and returns the answer, whose body must be closed. The end of ctx aborts both.
func (c *plainConn) exchange(ctx context.Context, request *http.Request) (*http.Response, error) {
	c.heard, c.allowed = false, maxHeader
	deadline, _ := ctx.Deadline()
	_ = c.SetDeadline(deadline) // it fails only for a closed connection, whose use fails anyway
	stop := func() bool { return true }
	if ctx.Done() != nil {
		stop = context.AfterFunc(ctx, func() { _ = c.SetDeadline(longAgo) })
	}
	response, err := c.converse(request, deadline)
	if err != nil {
		stop()
		c.Close()
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, err
	}
	body := response.Body.(*plainBody)
	body.stop = stop
	return response, nil
}

func (c *plainConn) converse(request *http.Request, deadline time.Time) (*http.Response, error) {
	if err := c.send(request); err != nil {
		return nil, err
	}
	if time.Until(deadline) > c.pool.timeout { // the server was asked to hold its answer
		if err := c.await(request.Context()); err != nil {
			return nil, err
		}
	}
	return c.receive()
}

// await returns when the answer has begun. Until then no buffers are held.
func (c *plainConn) await(ctx context.Context) error {
	if _, err := io.ReadFull(c.Conn, c.first[:]); err != nil {
		return err
	}
	c.heard, c.pending = true, 1
	_ = c.SetDeadline(time.Now().Add(c.pool.timeout))
	return ctx.Err() // its end may have set another deadline just before
}

func (c *plainConn) send(request *http.Request) error {
	if request.Header.Get("Accept-Encoding") == "" {
		request.Header.Set("Accept-Encoding", "gzip")
	}
	w := writers.Get().(*bufio.Writer)
	defer writers.Put(w)
	w.Reset(c.Conn)
	defer w.Reset(nil)
	if err := request.Write(w); err != nil {
		return err
	}
	return w.Flush()
}

// receive reads the header of the answer.
func (c *plainConn) receive() (*http.Response, error) {
	r := readers.Get().(*bufio.Reader)
	r.Reset(c)
	response, err := http.ReadResponse(r, nil)
	for err == nil && response.StatusCode < http.StatusOK && response.StatusCode != http.StatusSwitchingProtocols {
		response, err = http.ReadResponse(r, nil) // the one before was informational (1xx)
	}
	if err != nil {
		giveReader(r)
		if c.allowed <= 0 {
			err = errLargeHeader
		}
		return nil, err
	}
	c.allowed = math.MaxInt64
	reusable := !response.Close && response.StatusCode >= http.StatusOK && response.StatusCode != http.StatusRequestTimeout
	body := &plainBody{Reader: response.Body, body: response.Body, conn: c, reader: r, reusable: reusable}
	body.ended = response.Body == http.NoBody
	if response.Header.Get("Content-Encoding") == "gzip" {
		response.Header.Del("Content-Encoding")
		response.ContentLength, response.Uncompressed = -1, true
		body.Reader = &unpacking{packed: body.Reader}
	}
	response.Body = body
	return response, nil
}

func giveReader(r *bufio.Reader) {
	r.Reset(nil)
	readers.Put(r)
}

// Read returns the byte that await has already read, and then the rest of the answer.
func (c *plainConn) Read(p []byte) (n int, err error) {
	switch {
	case len(p) == 0:
		return 0, nil
	case c.allowed <= 0:
		return 0, errLargeHeader
	case c.pending > 0:
		n, c.pending = copy(p, c.first[:]), 0
	default:
		n, err = c.Conn.Read(p[:min(int64(len(p)), c.allowed)])
		c.heard = c.heard || n > 0
	}
	c.allowed -= int64(n)
	return n, err
}

// plainBody is the body of an answer. Once it is read to its end, the connection can be reused.
type plainBody struct {
	io.Reader
	body     io.Closer
	conn     *plainConn
	reader   *bufio.Reader // nil once it is closed
	reusable bool
	ended    bool
	stop     func() bool // stops watching the request's context
}

func (b *plainBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err == io.EOF {
		b.ended = true
	}
	return n, err
}

func (b *plainBody) Close() error {
	if b.reader == nil {
		return nil
	}
	nothingLeft := b.reader.Buffered() == 0
	giveReader(b.reader)
	b.reader = nil
	if b.stop() && b.ended && b.reusable && nothingLeft {
		b.conn.pool.keep(b.conn)
		return nil
	}
	return b.conn.Close()
}

// unpacking decompresses a body, starting when it is first read.
type unpacking struct {
	packed io.Reader
	reader *gzip.Reader
}

func (u *unpacking) Read(p []byte) (n int, err error) {
	if u.reader == nil {
		if u.reader, err = gzip.NewReader(u.packed); err != nil {
			return 0, err
		}
	}
	return u.reader.Read(p)
}
