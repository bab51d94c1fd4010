package upstream

import (
	"context"
	"net"
	"net/http"
	"time"
)

// transport sends requests to project servers.
type transport interface {
	http.RoundTripper
	CloseIdleConnections()
	// bound returns a context for a request whose answer the server may hold for as long as wait; from its beginning on, the answer
	// may take as long as timeout. begun is to be called at that beginning, cancel in the end.
	bound(ctx context.Context, timeout, wait time.Duration) (bounded context.Context, begun, cancel func())
}

// standardTransport is that of net/http.
type standardTransport struct{ *http.Transport }

// newTransport returns a transport that keeps at most maxIdle idle connections, 0 for any number.
func newTransport(idle time.Duration, maxIdle int) transport {
	dialer := &net.Dialer{Control: allowAddress}
	return standardTransport{&http.Transport{
		Proxy:                  nil, // not even the environment's: project servers are nearby
		DialContext:            dialer.DialContext,
		MaxIdleConns:           maxIdle,
		MaxIdleConnsPerHost:    1,
		IdleConnTimeout:        idle,
		MaxResponseHeaderBytes: maxHeader,
		ReadBufferSize:         buffer,
		WriteBufferSize:        buffer,
	}}
}

func (standardTransport) bound(ctx context.Context, timeout, wait time.Duration) (bounded context.Context, begun, cancel func()) {
	bounded, end := context.WithTimeout(ctx, timeout+wait)
	if wait == 0 {
		return bounded, func() {}, end
	}
	rest := time.AfterFunc(timeout+wait, end)
	return bounded, func() { rest.Reset(timeout) }, func() { rest.Stop(); end() }
}
