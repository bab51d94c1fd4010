package handlers

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/go-chi/chi/v5"
)

// visit is what becomes known of a request while it is served. It is a context, of the request or of its connection, whose
// requests come one after the other, and the router's as well: adding to a request's context copies the request.
type visit struct {
	context.Context
	id     [1]string // as a header has it; "" where requests get none
	began  time.Time
	proof  proof
	route  chi.Context
	answer observedWriter
}

type visitKey struct{}

// Value adds the visit itself to the values of its context.
func (v *visit) Value(key any) any {
	switch key {
	case visitKey{}:
		return v
	case chi.RouteCtxKey:
		if v.route.Routes != nil { // else nobody has begun it
			return &v.route
		}
	}
	return v.Context.Value(key)
}

// ConnContext is for http.Server.ConnContext: the requests of a connection share what it takes to observe one.
func ConnContext(ctx context.Context, _ net.Conn) context.Context { return &visit{Context: ctx} }

// begin makes v the visit of the next request.
func (v *visit) begin(w http.ResponseWriter, routes chi.Routes, id string) {
	v.id[0], v.began, v.proof = id, time.Now(), noProof
	v.answer = observedWriter{ResponseWriter: w}
	v.route.Reset()
	v.route.Routes = routes
}

// visitOf returns an empty visit where nobody observes.
func visitOf(ctx context.Context) *visit {
	if v, ok := ctx.Value(visitKey{}).(*visit); ok {
		return v
	}
	return &visit{}
}

// requestID is the id that the answer carries in X-Request-Id and that the log names.
func requestID(ctx context.Context) string { return visitOf(ctx).id[0] }

// count counts an answered request, and logs it at debug. Queries are not logged: they may hold codes.
func (g *gateway) count(v *visit, r *http.Request) {
	took := time.Since(v.began)
	g.Metrics.RequestEnded(r.Pattern, r.Method, v.answer.status, took)
	if ctx := context.Background(); g.Log.Enabled(ctx, slog.LevelDebug) {
		g.Log.DebugContext(ctx, "request", "id", v.id[0], "method", r.Method, "path", r.URL.Path, "status", v.answer.status,
			"bytes", v.answer.bytes, "took", took, "from", r.RemoteAddr)
	}
}

// observe gives each request an id, which no other process gives, and counts it, refused ones among them.
func (g *gateway) observe(routes chi.Routes, next http.Handler) http.Handler {
	process, count := rand.Text()[:10]+"-", atomic.Uint64{}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v, ok := r.Context().Value(visitKey{}).(*visit)
		if !ok {
			v = &visit{Context: r.Context()}
			r = r.WithContext(v)
		}
		v.begin(w, routes, process+strconv.FormatUint(count.Add(1), 10))
		w.Header()["X-Request-Id"] = v.id[:]
		g.Metrics.RequestBegan()
		defer func() { // also when the connection is aborted by a panic
			g.count(v, r)
		}()
		next.ServeHTTP(&v.answer, r)
	})
}

// observedWriter notes what is written. http.ResponseController finds the rest by Unwrap.
type observedWriter struct {
	http.ResponseWriter
	status int // 0 until the header is written
	bytes  int64
}

func (w *observedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *observedWriter) WriteHeader(status int) {
	if w.status == 0 && status >= 200 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *observedWriter) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	n, err := w.ResponseWriter.Write(b)
	w.bytes += int64(n)
	return n, err
}
