package web

import (
	"crypto/rand"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/go-chi/chi/v5"
)

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
