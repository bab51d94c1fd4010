// Package upstream is the client of project servers. It trusts none of them: the time, size and address of every call
// are limited, and every failure is an error with a message for people.
package upstream

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"strings"
	"time"
	"unicode"

	"switchyard/internal/domain"
	"switchyard/internal/keyed"
	"switchyard/internal/neterr"
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
	largeResults  *keyed.Semaphore // of tools
	pictures      *keyed.Semaphore
}

// NewClient returns a Client whose calls take at most timeout each, including connecting and reading the body.
func NewClient(timeout time.Duration) *Client {
	return &Client{
		feeds:   newTransport(timeout, idleFeeds, 0),
		others:  newTransport(timeout, idleOthers, maxIdleOthers),
		timeout: timeout,
		slots:   newSlots(),

		largeResults: keyed.NewSemaphore(maxLargeResults), pictures: keyed.NewSemaphore(maxPictures),
	}
}

func (c *Client) Close() {
	c.feeds.CloseIdleConnections()
	c.others.CloseIdleConnections()
}

func (c *Client) observe(ctx context.Context, p domain.Project, kind string, err error) {
	cancelled := err != nil && ctx.Err() != nil
	// An address that is only being checked belongs to no project.
	if c.Observe != nil && p.Name != "" && !cancelled && domain.CodeOf(err) != domain.LoopDetected {
		c.Observe(p.Name, kind, err)
	}
}

// ended observes a call and returns its error: NotFound, with a message, if the server does not have what was
// requested, which does not count as a failure.
func (c *Client) ended(ctx context.Context, p domain.Project, kind string, err error, missing string) error {
	if errors.Is(err, errNotFound) {
		c.observe(ctx, p, kind, nil)
		return domain.WrapError(domain.NotFound, err, missing)
	}
	c.observe(ctx, p, kind, err)
	return err
}

type call struct {
	method string        // "" is GET
	path   string        // begins with a slash, its segments escaped
	query  string        // escaped
	etag   string        // sent as If-None-Match unless ""
	body   []byte        // JSON, nil for none
	header http.Header   // added to the request's header, replacing its fields; may be nil
	limit  time.Duration // how long the answer may take; 0 is the client's timeout
	wait   time.Duration // how long the server was asked to hold its answer; added to limit
	any    bool          // accept every status except a redirect or 401; otherwise only 200, and 304 to an ETag
	// enough, if not nil, gets an event stream as far as it has come, each time that there is more of it, and reports
	// whether the rest is not wanted.
	enough func(body []byte) bool
}

type answer struct {
	status int
	header http.Header
	body   []byte // at most maxAnswer
}

// do makes the call and passes the answer to read, whose error it returns. If ctx ends it returns ctx's error, and
// LoopDetected for a call that a gateway has already passed on; every other failure is a BadGateway error with a
// message for people.
func (c *Client) do(ctx context.Context, p domain.Project, call call, read func(answer) error) error {
	if domain.ActorOf(ctx).Forwarded {
		return domain.Errorf(domain.LoopDetected, "this request came through a gateway already, and is not passed on to a "+
			"project again")
	}
	bounded, end := context.WithCancel(ctx)
	defer end()
	call.limit = cmp.Or(call.limit, c.timeout)
	timer := time.AfterFunc(call.limit+call.wait, end)
	defer timer.Stop()
	err := c.send(bounded, timer, p, call, read)
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return Explain(err, bounded.Err() != nil, call.limit)
}

func (c *Client) send(
	ctx context.Context, timer *time.Timer, p domain.Project, call call, read func(answer) error,
) error {
	request, err := newRequest(ctx, p, call)
	if err != nil {
		return err
	}
	transport := c.others
	if call.path == feedPath {
		transport = c.feeds
	}
	response, err := roundTrip(transport, request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if call.wait > 0 { // the server held its answer
		timer.Reset(call.limit)
	}
	if response.StatusCode == http.StatusNotModified && call.etag != "" {
		return read(answer{status: response.StatusCode, header: response.Header})
	}
	if err := checkStatus(response, call.any); err != nil {
		return err
	}
	if mediaType(response.Header) != eventStream {
		call.enough = nil
	}
	body, release, err := c.slots.readBody(ctx, p.Name, response, call.enough)
	defer release()
	if err != nil {
		return err
	}
	return read(answer{response.StatusCode, response.Header, body})
}

// roundTrip repeats a GET once if the answer probably was not meant for it: the rest of an earlier one, or that an idle
// connection timed out. The transport discards a connection on which something comes while idle; this came later.
func roundTrip(t *http.Transport, request *http.Request) (*http.Response, error) {
	response, err := t.RoundTrip(request)
	switch {
	case request.Method != http.MethodGet:
		return response, err
	case err == nil && response.StatusCode == http.StatusRequestTimeout:
		response.Body.Close()
	case err == nil || neterr.Describe(err, 0) != neterr.NotHTTP:
		return response, err
	}
	return t.RoundTrip(request)
}

func newRequest(ctx context.Context, p domain.Project, call call) (*http.Request, error) {
	address := p.Endpoint(call.path)
	if call.query != "" {
		address += "?" + call.query
	}
	var body io.Reader
	if call.body != nil {
		body = bytes.NewReader(call.body)
	}
	request, err := http.NewRequestWithContext(ctx, cmp.Or(call.method, http.MethodGet), address, body)
	if err != nil {
		return nil, err
	}
	keepApart(request, p)
	request.Header.Set("User-Agent", domain.GatewayUserAgent)
	request.Header.Set("Accept", "application/json")
	request.Header.Set(domain.HopHeader, "1")
	if call.body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if p.Token != "" {
		request.Header.Set("Authorization", "Bearer "+p.Token.Reveal())
	}
	if call.etag != "" {
		request.Header.Set("If-None-Match", call.etag)
	}
	maps.Copy(request.Header, call.header)
	return request, nil
}

var errTooLarge = domain.Errorf(domain.BadGateway, "answer is too large: over %d MiB", maxAnswer>>20)

// errNotFound is the cause of the error for HTTP status 404.
var errNotFound = errors.New("not found")

// checkStatus returns an error unless the status is 200 or, with all set, anything but a redirect or 401.
func checkStatus(response *http.Response, all bool) error {
	status := response.StatusCode
	switch {
	case status == http.StatusOK:
		return nil
	case status >= 300 && status < 400 && status != http.StatusNotModified:
		return domain.Errorf(domain.BadGateway, "answers with a redirect, which is not followed (HTTP status %d)", status)
	case status == http.StatusUnauthorized:
		return domain.WrapError(domain.BadGateway, domain.ErrTokenRefused,
			"refuses the token, or needs one (HTTP status 401)")
	case all:
		return nil
	case status == http.StatusNotFound:
		return domain.WrapError(domain.BadGateway, errNotFound, "is not a project server (HTTP status 404)")
	}
	message := fmt.Sprintf("answers with HTTP status %d", status)
	if status == http.StatusServiceUnavailable || status == http.StatusForbidden {
		if reason := plainReason(response); reason != "" {
			message += ": " + reason
		}
	}
	return domain.Errorf(domain.BadGateway, "%s", message)
}

// maxReason is how much of a reason in an answer is read, in bytes.
const maxReason = 300

// plainReason returns the first line of a plain-text answer, in which a project server says what is wrong.
func plainReason(response *http.Response) string {
	if mediaType(response.Header) != "text/plain" {
		return ""
	}
	text, _ := io.ReadAll(io.LimitReader(response.Body, maxReason)) // the part before an error will do
	line, _, _ := strings.Cut(strings.ToValidUTF8(string(text), ""), "\n")
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, line))
}

func mediaType(header http.Header) string {
	media, _, _ := mime.ParseMediaType(header.Get("Content-Type"))
	return media
}

// Explain gives a failed call a message for people and keeps the cause for the log. A domain error is returned
// unchanged.
func Explain(err error, timedOut bool, timeout time.Duration) error {
	var known *domain.Error
	var refused AddressError
	switch {
	case err == nil || errors.As(err, &known):
		return err
	case errors.As(err, &refused):
		return domain.WrapError(domain.BadGateway, err, refused.Error())
	case timedOut:
		err = errors.Join(context.DeadlineExceeded, err)
	}
	return domain.WrapError(domain.BadGateway, err, neterr.Describe(err, timeout))
}
