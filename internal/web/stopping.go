package web

import (
	"context"
	"net/http"
)

type stoppingKey struct{}

// WithStopping returns a base context for the requests of a server that shuts down when stopping ends. Long-polls are
// then answered at once; other requests continue.
func WithStopping(ctx, stopping context.Context) context.Context {
	return context.WithValue(ctx, stoppingKey{}, stopping)
}

// LongPollContext returns the context for a long-poll: it ends with the request, when the server begins to shut down,
// and when the request's session or token ends. The caller must call the returned function.
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
