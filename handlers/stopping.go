package handlers

import (
	"context"
	"net/http"
)

type stoppingKey struct{}

// WithStopping returns the base context of a server's requests. When stopping ends, requests that wait for news are
// answered with what there is, so that they do not hold up the server's end; other requests go on.
func WithStopping(ctx, stopping context.Context) context.Context {
	return context.WithValue(ctx, stoppingKey{}, stopping)
}

// waiting returns the context for waiting in r: it ends with the request, or when the server is about to stop.
func waiting(r *http.Request) (context.Context, context.CancelFunc) {
	stopping := stoppingOf(r)
	if stopping == nil {
		return r.Context(), func() {}
	}
	ctx, cancel := context.WithCancel(r.Context())
	stop := context.AfterFunc(stopping, cancel)
	return ctx, func() { stop(); cancel() }
}

// stoppingOf returns the context that ends when the server is about to stop, nil where nobody said.
func stoppingOf(r *http.Request) context.Context {
	stopping, _ := r.Context().Value(stoppingKey{}).(context.Context)
	return stopping
}
