package web

import (
	"cmp"
	"context"
	"crypto/rand"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/go-chi/chi/v5"

	"switchyard/internal/domain"
)

// RequestInfo is what becomes known of a request while it is served.
type RequestInfo struct {
	// Auth is how the caller has identified itself.
	Auth AuthMethod
	// Actor is who the caller is, as far as that is known; it is also that of the request's context. Its RequestID is what
	// the answer carries in X-Request-Id and what the log names, "" where requests get none.
	domain.Actor
	// Ended ends when the session or the named token does that the request came with; nil is never.
	Ended context.Context
	// Caller is whom limits count for.
	Caller string
	// SessionID is that of the session that the request came with, "" for none.
	SessionID string
	// SecretAddress is whether the request's address holds a secret, which no page may repeat.
	SecretAddress bool
}

// AuthMethod is how a caller has shown that it may do what it asks for.
type AuthMethod string

const (
	AuthNone AuthMethod = "" // not at all: only what is public, or an agent's own, can be asked for
	// AuthNotRequired is where nothing is set up that callers have to show: everyone is the administrator.
	AuthNotRequired AuthMethod = "not required"
	AuthToken       AuthMethod = "token"
	AuthSession     AuthMethod = "session"
	AuthProxy       AuthMethod = "proxy" // by what a trusted proxy says
	AuthAgent       AuthMethod = "agent" // by the secret of the agent that is asked about
)

type requestInfoKey struct{}

// InfoOf returns the info of the request with this context; an empty one where there is none.
func InfoOf(ctx context.Context) *RequestInfo {
	if info, ok := ctx.Value(requestInfoKey{}).(*RequestInfo); ok {
		return info
	}
	return &RequestInfo{}
}

func RequestID(ctx context.Context) string { return InfoOf(ctx).RequestID }

func (i *RequestInfo) Identify(auth AuthMethod, actor domain.Actor, ended context.Context) {
	actor.RequestID, actor.Forwarded = i.RequestID, i.Forwarded
	i.Auth, i.Actor, i.Ended = auth, actor, ended
}

// WithRequestInfo gives each request its info, with an id that no other process gives.
func WithRequestInfo(next http.Handler) http.Handler {
	process, count := rand.Text()[:10]+"-", atomic.Uint64{}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info := &RequestInfo{}
		info.Forwarded = r.Header.Get(domain.HopHeader) != ""
		info.RequestID = process + strconv.FormatUint(count.Add(1), 10)
		w.Header().Set("X-Request-Id", info.RequestID)
		ctx := context.WithValue(domain.WithActor(r.Context(), &info.Actor), requestInfoKey{}, info)
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

type stoppingKey struct{}

// WithStopping returns a base context for the requests of a server that shuts down when stopping ends. Long-polls are
// then answered at once; other requests continue.
func WithStopping(ctx, stopping context.Context) context.Context {
	return context.WithValue(ctx, stoppingKey{}, stopping)
}

// Ends returns what ends a long-poll besides its request: the server's shutdown, which begins, and the end of the
// request's session or token.
func Ends(r *http.Request) (stopping, ended context.Context) {
	stopping, _ = r.Context().Value(stoppingKey{}).(context.Context)
	never := context.Background()
	return cmp.Or(stopping, never), cmp.Or(InfoOf(r.Context()).Ended, never)
}

// LongPollContext returns a context that ends with the request and with what Ends says. The caller must call the
// returned function.
func LongPollContext(r *http.Request) (context.Context, context.CancelFunc) {
	stopping, ended := Ends(r)
	ctx, cancel := context.WithCancel(r.Context())
	forget, forgetEnd := context.AfterFunc(stopping, cancel), context.AfterFunc(ended, cancel)
	return ctx, func() {
		forget()
		forgetEnd()
		cancel()
	}
}

type RequestMetrics interface {
	RequestBegan()
	// RequestEnded counts an answered request. The route is "" where none matched.
	RequestEnded(route, method string, status int, took time.Duration)
}

// AccessLog counts every request, including refused ones, and logs it at debug level. Queries are not logged: they may
// hold codes. It must run right inside LimitWriteTime, and in a chi router, since it reports the matched route.
func AccessLog(log *slog.Logger, metrics RequestMetrics) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			began := time.Now()
			answer := w.(*answer)
			metrics.RequestBegan()
			defer func() { // also when the connection is aborted by a panic
				took := time.Since(began)
				metrics.RequestEnded(chi.RouteContext(r.Context()).RoutePattern(), r.Method, answer.status, took)
				if log.Enabled(r.Context(), slog.LevelDebug) {
					log.DebugContext(r.Context(), "request", "id", RequestID(r.Context()), "method", r.Method, "path", r.URL.Path,
						"status", answer.status, "bytes", answer.bytes, "took", took, "from", r.RemoteAddr)
				}
			}()
			next.ServeHTTP(answer, r)
		})
	}
}

// Recover turns a panic into a 500 that names the request's id, creating an id if there is none yet.
func Recover(log *slog.Logger) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer func() {
				cause := recover()
				if cause == nil {
					return
				}
				if cause == http.ErrAbortHandler {
					panic(cause)
				}
				id := RequestID(r.Context())
				if id == "" {
					id = rand.Text()
					w.Header().Set("X-Request-Id", id)
				}
				log.ErrorContext(r.Context(), "panic", "id", id, "method", r.Method, "path", r.URL.Path,
					"cause", cause, "stack", string(debug.Stack()))
				Plain(w, http.StatusInternalServerError, "internal error, request "+id)
			}()
			next.ServeHTTP(w, r)
		})
	}
}
