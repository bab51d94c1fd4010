// Package upstream is the client of project servers. It trusts none of them: the time, size and address of every call are
// bounded, and what goes wrong is an error in words that people understand.
package upstream

import (
	"net"
	"net/http"
	"strings"
	"time"
	"unicode"

	"switchyard/internal/domain"
)

const (
	// maxAnswer is the largest answer of a project server, in bytes after decompression.
	maxAnswer = 8 << 20
	// maxHeader is the largest header of an answer, in bytes.
	maxHeader = 64 << 10
	// buffer is the size of a connection's read and write buffers, in bytes: of the default of 4 KiB most is never used.
	buffer = 1 << 10
	// idleFeeds is how long a feed's connection stays open that waits for no answer.
	idleFeeds = 90 * time.Second
)

// Client calls project servers. It is safe for concurrent use.
type Client struct {
	// Observe, when set, is called for each call that has ended, but not of one that its caller gave up.
	// It must be set before the first call.
	Observe func(project, kind string, err error)

	// They are no Clients, which would follow redirects, and copy headers for that.
	feeds, secureFeeds, fetches, others transport

	timeout time.Duration
	slots   slots
}

type transport interface {
	http.RoundTripper
	CloseIdleConnections()
}

// NewClient returns a Client whose calls take at most timeout each, connection and body included.
func NewClient(timeout time.Duration) *Client {
	return &Client{
		feeds:       newPlainConns(timeout, idleFeeds, 0),
		secureFeeds: newTransport(idleFeeds, 0),
		fetches:     newPlainConns(timeout, idleOthers, maxIdleOthers),
		others:      newTransport(idleOthers, maxIdleOthers),
		timeout:     timeout,
		slots:       newSlots(),
	}
}

// idleOthers is how long a connection stays open that is not a feed's: most projects are asked for nothing else for a long
// time, and a connection takes a descriptor, two goroutines and 8 KiB.
const idleOthers = 5 * time.Second

// maxIdleOthers is how many of these connections stay open at most: all pipelines of a thousand projects can be asked for every
// few seconds without connecting again, and those of ten thousand at once do not need as many connections.
const maxIdleOthers = 1100

// newTransport returns a transport that keeps at most maxIdle connections to all servers, or with 0 any number.
func newTransport(idle time.Duration, maxIdle int) transport {
	dialer := &net.Dialer{Control: allowAddress}
	return &http.Transport{
		Proxy:                  nil, // not the environment's either: project servers are near
		DialContext:            dialer.DialContext,
		MaxIdleConns:           maxIdle,
		MaxIdleConnsPerHost:    1,
		IdleConnTimeout:        idle,
		MaxResponseHeaderBytes: maxHeader,
		ReadBufferSize:         buffer,
		WriteBufferSize:        buffer,
	}
}

// transportFor returns what makes a call.
func (c *Client) transportFor(p domain.Project, call call) transport {
	isASCII := strings.IndexFunc(p.URL, func(r rune) bool { return r > unicode.MaxASCII }) < 0 // other hosts are to be translated
	isPlain := strings.HasPrefix(p.URL, "http://") && isASCII
	switch {
	case call.path == feedPath && isPlain:
		return c.feeds
	case call.path == feedPath:
		return c.secureFeeds
	case isPlain && call.method == "": // GET: it may be sent again
		return c.fetches
	}
	return c.others
}

// Close closes idle connections.
func (c *Client) Close() {
	for _, t := range []transport{c.feeds, c.secureFeeds, c.fetches, c.others} {
		t.CloseIdleConnections()
	}
}

func (c *Client) observe(project, kind string, err error) {
	if c.Observe != nil && project != "" { // an address that is only checked belongs to no project
		c.Observe(project, kind, err)
	}
}
