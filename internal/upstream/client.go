// Package upstream is the client of project servers. It trusts none of them: time, size and place of every call are
// bounded, and what goes wrong is an error in words that people understand.
package upstream

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"switchyard/internal/domain"
)

const (
	// maxAnswer is the largest answer of a project server, in bytes after decompression.
	maxAnswer = 8 << 20
	// maxHeader is the largest header of an answer, in bytes.
	maxHeader = 64 << 10
	// userAgent tells project servers who asks.
	userAgent = "switchyard-gateway"
)

// tiers bound the memory that is taken by servers which send too much: to read and use more of an answer than the tier
// before has, a call waits for one of its places.
var tiers = [...]struct{ size, places int }{
	{256 << 10, 0}, // no waiting: twice what a full feed has
	{1 << 20, 16},
	{maxAnswer, 3},
}

// Client calls project servers. It is safe for concurrent use.
type Client struct {
	// Observe, when it is set, is told of each call that has ended, but not of one that its caller gave up.
	// It must be set before the first call.
	Observe func(project, kind string, err error)

	http    *http.Client
	timeout time.Duration
	places  [len(tiers)]chan struct{} // hold a value for each place taken
}

// NewClient returns a Client whose calls take at most timeout each, connection and body included.
func NewClient(timeout time.Duration) *Client {
	dialer := &net.Dialer{Control: allowAddress}
	c := &Client{
		http: &http.Client{
			Transport: &http.Transport{
				Proxy:                  nil, // not the environment's either: project servers are near
				DialContext:            dialer.DialContext,
				MaxIdleConns:           0, // no limit over all hosts: the default of 100 redials at 1,000 projects
				MaxIdleConnsPerHost:    2, // the feed's and the pipeline's
				IdleConnTimeout:        90 * time.Second,
				MaxResponseHeaderBytes: maxHeader,
			},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		timeout: timeout,
	}
	for i, tier := range tiers {
		c.places[i] = make(chan struct{}, tier.places)
	}
	return c
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// call is one GET of a project server.
type call struct {
	kind  string // for Observe
	path  string // begins with a slash
	query url.Values
	etag  string        // sent as If-None-Match unless ""
	wait  time.Duration // how long the server was asked to hold its answer; added to the client's timeout
}

// answer is what a project server said: status 200, or 304 without a body where an ETag was sent.
type answer struct {
	status int
	header http.Header
	body   []byte // at most maxAnswer; valid until read returns
}

// get makes the call and hands the answer to read, whose error it returns. Every other failure, a status that read
// does not expect among them, is a BadGateway error with a message for people; the end of ctx is ctx's own error.
func (c *Client) get(ctx context.Context, p domain.Project, call call, read func(answer) error) error {
	bounded, cancel := context.WithTimeout(ctx, c.timeout+call.wait)
	defer cancel()
	err := c.do(bounded, cancel, p, call, read)
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	err = explain(err, bounded.Err() != nil, c.timeout)
	if c.Observe != nil {
		c.Observe(p.Name, call.kind, err)
	}
	return err
}

func (c *Client) do(ctx context.Context, cancel func(), p domain.Project, call call, read func(answer) error) error {
	address := p.Endpoint(call.path)
	if len(call.query) > 0 {
		address += "?" + call.query.Encode()
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	request.Header.Set("User-Agent", userAgent)
	request.Header.Set("Accept", "application/json")
	if p.Token != "" {
		request.Header.Set("Authorization", "Bearer "+p.Token.Reveal())
	}
	if call.etag != "" {
		request.Header.Set("If-None-Match", call.etag)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusNotModified && call.etag != "" {
		return read(answer{status: response.StatusCode, header: response.Header})
	}
	if response.StatusCode != http.StatusOK {
		return statusError(response)
	}
	// Once an answer has begun it is not held any more, however long the call may wait.
	defer time.AfterFunc(c.timeout, cancel).Stop()
	body, leave, err := c.readBody(ctx, response)
	defer leave()
	if err != nil {
		return err
	}
	return read(answer{response.StatusCode, response.Header, body})
}

// readBody reads an answer's body, with places for its size, which the caller leaves when it is done with it.
func (c *Client) readBody(ctx context.Context, response *http.Response) (body []byte, leave func(), err error) {
	taken := 0
	leave = func() {
		for ; taken > 0; taken-- {
			<-c.places[taken]
		}
	}
	if response.ContentLength > maxAnswer {
		return nil, leave, errTooLarge
	}
	var buffer bytes.Buffer
	if n := response.ContentLength; n > 0 && n < int64(tiers[0].size) {
		buffer.Grow(int(n) + bytes.MinRead)
	}
	for i, tier := range tiers {
		if i > 0 {
			select {
			case c.places[i] <- struct{}{}:
				taken = i
				buffer.Grow(tier.size - buffer.Len() + bytes.MinRead)
			case <-ctx.Done():
				return nil, leave, ctx.Err()
			}
		}
		if _, err := buffer.ReadFrom(io.LimitReader(response.Body, int64(tier.size-buffer.Len()+1))); err != nil {
			return nil, leave, err
		}
		if buffer.Len() <= tier.size {
			return buffer.Bytes(), leave, nil
		}
	}
	return nil, leave, errTooLarge
}
