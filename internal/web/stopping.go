package web

import (
	"context"
	"net/http"
)

type stoppingKey struct{}

// WithStopping returns a base context for the requests of a server that stops when stopping ends. Requests that wait for
// news are then answered with what there is; other requests go on.
func WithStopping(ctx, stopping context.Context) context.Context {
	return context.WithValue(ctx, stoppingKey{}, stopping)
}

// LongPollContext returns the context for waiting in r: it ends with the request, or when its server is about to stop.
func LongPollContext(r *http.Request) (context.Context, context.CancelFunc) {
	stopping, ok := r.Context().Value(stoppingKey{}).(context.Context)
	if !ok {
		return r.Context(), func() {}
	}
	ctx, cancel := context.WithCancel(r.Context())
	stop := context.AfterFunc(stopping, cancel)
	return ctx, func() { stop(); cancel() }
}
