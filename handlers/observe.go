package handlers

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"
)

// visit is what becomes known of a request while it is served.
type visit struct{ route string }

type visitKey struct{}

// observe counts every request, refused ones among them, and logs it at debug. Queries are not logged: they may hold codes.
func observe(m *Metrics, log *slog.Logger, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v := &visit{}
		r = r.WithContext(context.WithValue(r.Context(), visitKey{}, v))
		answer := &observedWriter{ResponseWriter: w}
		began := time.Now()
		defer func() { // also when the connection is aborted by a panic
			took := time.Since(began)
			m.request(v.route, r.Method, answer.status, took)
			if log.Enabled(r.Context(), slog.LevelDebug) {
				log.DebugContext(r.Context(), "request", "id", w.Header().Get("X-Request-Id"), "method", r.Method, "path", r.URL.Path,
					"status", answer.status, "bytes", answer.bytes, "took", took, "from", r.RemoteAddr)
			}
		}()
		next.ServeHTTP(answer, r)
	})
}

// noteRoute tells observe by which row of the route table a request was served.
func noteRoute(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if v, ok := r.Context().Value(visitKey{}).(*visit); ok {
			defer func() { v.route = chi.RouteContext(r.Context()).RoutePattern() }()
		}
		next.ServeHTTP(w, r)
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
