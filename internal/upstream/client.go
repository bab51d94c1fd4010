// Package upstream is the client of project servers. It trusts none of them: the time, size and address of every call
// are limited, and every failure is an error with a message for people.
package upstream

import (
	"net/http"
	"time"

	"switchyard/internal/domain"
)

const (
	// maxAnswer is the largest answer of a project server, in bytes after decompression.
	maxAnswer = 8 << 20
	// maxHeader is the largest header of an answer, in bytes.
	maxHeader = 64 << 10
)

// Client calls project servers. It is safe for concurrent use.
type Client struct {
	// ToolTimeout is how long a project's tool may take, 0 for as long as other calls. It must be set before the first
	// call.
	ToolTimeout time.Duration
	// Observe, if not nil, is called after each call, except those that their callers cancelled.
	// It must be set before the first call.
	Observe func(project, kind string, err error)

	feeds, others *http.Transport
	timeout       time.Duration
	slots         *slots
}

// NewClient returns a Client whose calls take at most timeout each, including connecting and reading the body.
func NewClient(timeout time.Duration) *Client {
	return &Client{
		feeds:   newTransport(timeout, idleFeeds, 0),
		others:  newTransport(timeout, idleOthers, maxIdleOthers),
		timeout: timeout,
		slots:   newSlots(),
	}
}

// Close closes idle connections.
func (c *Client) Close() {
	c.feeds.CloseIdleConnections()
	c.others.CloseIdleConnections()
}

func (c *Client) observe(project, kind string, err error) {
	// An address that is only being checked belongs to no project.
	if c.Observe != nil && project != "" && domain.CodeOf(err) != domain.LoopDetected {
		c.Observe(project, kind, err)
	}
}
