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

// LongPollContext returns the context for waiting in r: it ends with the request, when its server is about to stop, or when
// the session or token that it came with has ended.
func LongPollContext(r *http.Request) (context.Context, context.CancelFunc) {
	stopping, _ := r.Context().Value(stoppingKey{}).(context.Context)
	ended := InfoOf(r.Context()).Ended
	if stopping == nil && ended == nil {
		return r.Context(), func() {}
	}
	ctx, cancel := context.WithCancel(r.Context())
	var stops []func() bool
	for _, end := range []context.Context{stopping, ended} {
		if end != nil {
			stops = append(stops, context.AfterFunc(end, cancel))
		}
	}
	return ctx, func() {
		for _, stop := range stops {
			stop()
		}
		cancel()
	}
}
