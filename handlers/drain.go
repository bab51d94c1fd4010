package handlers

import (
	"context"
	"net/http"
)

// Drain lets a server end soon without leaving anybody without an answer. When stopping ends, requests that wait for news
// are answered with what there is; other requests go on.
type Drain struct {
	stopping context.Context
	parked   parkingLot
}

// NewDrain returns a Drain for one server, which stops when stopping ends.
func NewDrain(stopping context.Context) *Drain {
	d := &Drain{stopping: stopping, parked: parkingLot{taken: map[*parked]struct{}{}}}
	context.AfterFunc(stopping, d.parked.endAll)
	return d
}

type drainKey struct{}

// With returns the base context of the server's requests.
func (d *Drain) With(ctx context.Context) context.Context {
	return context.WithValue(ctx, drainKey{}, d)
}

// Wait returns when the parked requests, which the server itself no longer knows, are answered, or when ctx ends. Call it
// when the server has been shut down.
func (d *Drain) Wait(ctx context.Context) {
	answered := make(chan struct{})
	go func() { d.parked.answering.Wait(); close(answered) }()
	select {
	case <-answered:
	case <-ctx.Done():
	}
}

// drainOf returns the Drain of the request's server, nil where it has none.
func drainOf(r *http.Request) *Drain {
	d, _ := r.Context().Value(drainKey{}).(*Drain)
	return d
}

// waiting returns the context for waiting in r: it ends with the request, or when the server is about to stop.
func waiting(r *http.Request) (context.Context, context.CancelFunc) {
	drain := drainOf(r)
	if drain == nil {
		return r.Context(), func() {}
	}
	ctx, cancel := context.WithCancel(r.Context())
	stop := context.AfterFunc(drain.stopping, cancel)
	return ctx, func() { stop(); cancel() }
}
