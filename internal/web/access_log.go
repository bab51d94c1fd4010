package web

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
)

// RequestMetrics counts requests.
type RequestMetrics interface {
	RequestBegan()
	// RequestEnded counts an answered request. The route is "" where none matched.
	RequestEnded(route, method string, status int, took time.Duration)
}

// AccessLog counts each request, refused ones among them, and logs it at debug. Queries are not logged: they may hold
// codes. It belongs inside a chi router, whose routes it names.
func AccessLog(log *slog.Logger, metrics RequestMetrics) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			began := time.Now()
			answer := middleware.NewWrapResponseWriter(w, r.ProtoMajor)
			metrics.RequestBegan()
			defer func() { // also when the connection is aborted by a panic
				took := time.Since(began)
				metrics.RequestEnded(chi.RouteContext(r.Context()).RoutePattern(), r.Method, answer.Status(), took)
				if log.Enabled(r.Context(), slog.LevelDebug) {
					log.DebugContext(r.Context(), "request", "id", RequestID(r.Context()), "method", r.Method, "path", r.URL.Path,
						"status", answer.Status(), "bytes", answer.BytesWritten(), "took", took, "from", r.RemoteAddr)
				}
			}()
			next.ServeHTTP(answer, r)
		})
	}
}
