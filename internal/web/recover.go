package web

import (
	"crypto/rand"
	"log/slog"
	"net/http"
	"runtime/debug"
)

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
