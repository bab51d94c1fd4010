package web

import (
	"context"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"switchyard/internal/domain"
)

// BodyTime is how long a client may take to send a request's body. Headers have the same limit.
const BodyTime = 10 * time.Second

// LimitBodyTime cuts off bodies that take longer than BodyTime. A server-wide ReadTimeout would also end long-polls
// whose body arrived long ago. When a handler leaves a body unread, net/http reads up to 256 KiB of it and then closes
// the connection.
func LimitBodyTime(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body != nil && r.Body != http.NoBody {
			connection := http.NewResponseController(w)
			if connection.SetReadDeadline(time.Now().Add(BodyTime)) == nil {
				r.Body = &timedBody{r.Body, connection}
			}
		}
		next.ServeHTTP(w, r)
	})
}

// timedBody lifts the deadline once the body has been read to its end.
type timedBody struct {
	io.ReadCloser
	connection *http.ResponseController
}

func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		_ = b.connection.SetReadDeadline(time.Time{})
	}
	return n, err
}

// WriteTime is how long a client may take to accept an answer, from its first byte on.
const WriteTime = 30 * time.Second

// LimitWriteTime drops clients that do not accept their answer within WriteTime. Waiting for an answer does not count.
// A handler that sets a write deadline after it has written the status keeps its own.
func LimitWriteTime(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := &answer{ResponseWriter: w} // net/http has lifted the deadline of the connection's last answer
		next.ServeHTTP(a, r)
		if a.status == 0 {
			limitWrite(w, WriteTime) // an empty answer has to be sent, too
		}
	})
}

// LimitPart gives a client WriteTime for the next part of an answer that comes in parts.
func LimitPart(w http.ResponseWriter) { limitWrite(w, WriteTime) }

func limitWrite(w http.ResponseWriter, d time.Duration) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(d)) // every connection can
}

// answer sets the deadline when writing begins, and notes the status and the size. http.ResponseController finds the
// rest by Unwrap.
type answer struct {
	http.ResponseWriter
	status int // 0 until it is written
	bytes  int
}

func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

func (a *answer) WriteHeader(status int) {
	if a.status < http.StatusOK { // a 1xx response is not the final one
		a.status = status
		limitWrite(a.ResponseWriter, WriteTime)
	}
	a.ResponseWriter.WriteHeader(status)
}

func (a *answer) Write(b []byte) (int, error) {
	if a.status < http.StatusOK {
		a.status = http.StatusOK
		limitWrite(a.ResponseWriter, WriteTime)
	}
	n, err := a.ResponseWriter.Write(b)
	a.bytes += n
	return n, err
}

// streamPatience is how long a client may take to accept a part of a stream.
const streamPatience = 10 * time.Second

// StreamWriter returns a writer for a stream, whose parts have a deadline each.
func StreamWriter(w http.ResponseWriter) http.ResponseWriter { return streamWriter{w} }

type streamWriter struct{ http.ResponseWriter }

func (w streamWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w streamWriter) Write(b []byte) (int, error) {
	limitWrite(w.ResponseWriter, streamPatience)
	return w.ResponseWriter.Write(b)
}

const (
	// maxStrangerBodies is what the bodies of all requests by strangers may hold at a time, in bytes. The first SmallBody
	// of each may use all of it, the rest stops at largeStrangerBodies: whoever sends large bodies does not shut out a
	// login.
	maxStrangerBodies   = 16 << 20
	largeStrangerBodies = 12 << 20
)

// StrangerBodies bounds the bodies that strangers have under way. The zero value is ready for use.
type StrangerBodies struct{ held atomic.Int64 }

// Limit counts what is read of the request's body until release is called. Reading too much returns Unavailable.
func (s *StrangerBodies) Limit(r *http.Request) (release func()) {
	if r.Body == nil || r.Body == http.NoBody {
		return func() {}
	}
	body := &strangerBody{ReadCloser: r.Body, all: s}
	r.Body = body
	return func() { s.held.Add(-body.held) }
}

// Discard reads a body of at most limit bytes to its end and keeps none of it. It returns the errors of BodyError.
func Discard(w http.ResponseWriter, r *http.Request, limit int64) error {
	body := r.Body
	if stranger, ok := body.(*strangerBody); ok {
		body = stranger.ReadCloser // the limit for strangers is on what is held
	}
	_, err := io.Copy(io.Discard, http.MaxBytesReader(w, body, limit))
	return BodyError(err)
}

type strangerBody struct {
	io.ReadCloser
	all  *StrangerBodies
	held int64
}

func (b *strangerBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.held += int64(n)
	limit := int64(maxStrangerBodies)
	if b.held > SmallBody {
		limit = largeStrangerBodies
	}
	if b.all.held.Add(int64(n)) > limit && n > 0 {
		return 0, domain.Errorf(domain.Unavailable, "too many requests are being sent at once; try again in a few seconds")
	}
	return n, err
}

const (
	// maxHeld is how many calls are held at a time, maxHeldByCaller how many of one caller. Heartbeats do not count: an
	// agent has one. A held call takes less than 32 KiB.
	maxHeld         = 1024
	maxHeldByCaller = 64
)

// HeldCalls counts the calls whose answer waits for something. The zero value is ready for use.
type HeldCalls struct {
	mu       sync.Mutex
	all      int
	byCaller map[string]int
}

// Hold counts a call of the request's caller until release is called, and returns the context to wait with
// (LongPollContext). It returns RateLimited when too many are held.
func (h *HeldCalls) Hold(r *http.Request) (ctx context.Context, release func(), err error) {
	uncount, err := h.Count(r)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := LongPollContext(r)
	return ctx, func() {
		cancel()
		uncount()
	}, nil
}

// HoldFor is Hold for a call that waits for the given time; one that does not wait is not counted.
func (h *HeldCalls) HoldFor(r *http.Request, wait time.Duration) (ctx context.Context, release func(), err error) {
	if wait <= 0 {
		return r.Context(), func() {}, nil
	}
	return h.Hold(r)
}

// Count is Hold for a caller that needs no context to wait with.
func (h *HeldCalls) Count(r *http.Request) (release func(), err error) {
	caller := InfoOf(r.Context()).Caller
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.byCaller[caller] >= maxHeldByCaller:
		return nil, domain.Errorf(domain.RateLimited,
			"you hold %d calls that wait; one more has to wait for one of them to end", maxHeldByCaller)
	case h.all >= maxHeld:
		return nil, domain.Errorf(domain.RateLimited, "%d calls that wait are held here; try again when some have ended",
			maxHeld)
	}
	if h.byCaller == nil {
		h.byCaller = map[string]int{}
	}
	h.all++
	h.byCaller[caller]++
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.all--
		if h.byCaller[caller]--; h.byCaller[caller] == 0 {
			delete(h.byCaller, caller)
		}
	}, nil
}
