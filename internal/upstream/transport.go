package upstream

import (
	"context"
	"crypto/tls"
	"hash/maphash"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"switchyard/internal/domain"
)

const (
	// buffer is the size of a connection's read and write buffers, in bytes: a request fits, and most of the default 4 KiB
	// would never be used.
	buffer = 512
	// idleFeeds is how long the idle connection of a feed stays open.
	idleFeeds = 90 * time.Second
	// idleOthers is how long idle connections other than feeds' stay open, and maxIdleOthers the most of them: enough to
	// ask a thousand projects for their pipelines every few seconds without reconnecting.
	idleOthers, maxIdleOthers = 5 * time.Second, 1100
)

// newTransport returns a transport that connects within timeout and keeps at most maxIdle idle connections, 0 for any
// number. It is used without an http.Client, which would follow redirects.
func newTransport(timeout, idle time.Duration, maxIdle int) *http.Transport {
	// A dial goes on after its request has ended, hence the time limit.
	dialer := &net.Dialer{Control: allowAddress, Timeout: timeout}
	secure := &tls.Dialer{NetDialer: dialer}
	return &http.Transport{
		Proxy: nil, // not even the environment's: project servers are nearby
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return dialer.DialContext(ctx, network, withoutProject(address))
		},
		DialTLSContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(ctx, timeout) // the handshake included
			defer cancel()
			return secure.DialContext(ctx, network, withoutProject(address))
		},
		MaxIdleConns:           maxIdle,
		MaxIdleConnsPerHost:    2,
		IdleConnTimeout:        idle,
		MaxResponseHeaderBytes: maxHeader,
		ReadBufferSize:         buffer,
		WriteBufferSize:        buffer,
	}
}

// keepApart makes a transport keep the connections of each project to itself: whatever a server sends over one of them,
// late or unasked, no other project behind the same address gets it.
func keepApart(request *http.Request, p domain.Project) {
	host, port := request.URL.Hostname(), request.URL.Port()
	request.Host = request.URL.Host
	request.URL.Host = "[" + host + "." + strconv.FormatUint(maphash.Comparable(seed, p), 36) + "]"
	if port != "" {
		request.URL.Host += ":" + port
	}
}

// withoutProject returns the address that keepApart changed.
func withoutProject(address string) string {
	host, port, _ := net.SplitHostPort(address)
	return net.JoinHostPort(host[:strings.LastIndexByte(host, '.')], port)
}
