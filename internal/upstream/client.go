// Package upstream is the client of project servers. It trusts none of them: the time, size and address of every call are
// limited, and every failure is an error with a message for people.
package upstream

import (
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
	// buffer is the size of a connection's read and write buffers, in bytes: most of the default 4 KiB would never be used.
	buffer = 1 << 10
	// idleFeeds is how long the idle connection of a feed stays open.
	idleFeeds = 90 * time.Second
)

// Client calls project servers. It is safe for concurrent use.
type Client struct {
	// Observe, if not nil, is called after each call, except those that their callers cancelled.
	// It must be set before the first call.
	Observe func(project, kind string, err error)

	// Transports rather than http.Clients, which would follow redirects and copy headers for that.
	feeds, secureFeeds, fetches, others transport

	timeout time.Duration
	slots   slots
}

// NewClient returns a Client whose calls take at most timeout each, including connecting and reading the body.
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

// idleOthers is how long idle connections other than feeds' stay open: most projects get no other requests for a long
// time, and a connection takes a descriptor, two goroutines and 8 KiB.
const idleOthers = 5 * time.Second

// maxIdleOthers is the most of these connections that stay open: enough to ask a thousand projects for their pipelines every
// few seconds without reconnecting, without keeping ten thousand connections for as many projects.
const maxIdleOthers = 1100

// transportFor returns the transport for a call.
func (c *Client) transportFor(p domain.Project, call call) transport {
	isASCII := strings.IndexFunc(p.URL, func(r rune) bool { return r > unicode.MaxASCII }) < 0 // other host names must be converted to Punycode
	isPlain := strings.HasPrefix(p.URL, "http://") && isASCII
	switch {
	case call.path == feedPath && isPlain:
		return c.feeds
	case call.path == feedPath:
		return c.secureFeeds
	case isPlain && call.method == "": // GET: it may be repeated
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
	if c.Observe != nil && project != "" { // an address that is only being checked belongs to no project
		c.Observe(project, kind, err)
	}
}
