package upstream

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"net/http"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/neterr"
)

// call is one request to a project server.
type call struct {
	method string        // "" is GET
	path   string        // begins with a slash, its segments escaped
	query  string        // escaped
	etag   string        // sent as If-None-Match unless ""
	body   []byte        // JSON, nil for none
	header http.Header   // added to the request's header, replacing its fields; may be nil
	limit  time.Duration // how long the answer may take; 0 is the client's timeout
	wait   time.Duration // how long the server was asked to hold its answer; added to limit
	any    bool          // accept every status but a redirect or 401; otherwise only 200, and 304 to an ETag
	// enough, if not nil, gets an event stream as far as it has come, each time that there is more of it, and reports
	// whether the rest is not wanted.
	enough func(body []byte) bool
}

// answer is what a project server answered.
type answer struct {
	status int
	header http.Header
	body   []byte // at most maxAnswer; valid until read returns
}

// do makes the call and passes the answer to read, whose error it returns. If ctx ends it returns ctx's error, for a
// call that a gateway has passed on already LoopDetected; every other failure is a BadGateway error with a message for
// people.
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
	return explain(err, bounded.Err() != nil, call.limit)
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

// roundTrip repeats a GET once whose answer was probably none to it: the rest of an earlier one, or that an idle
// connection timed out. What comes while a connection is idle makes the transport discard it; this came later.
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

// Headers that never change, which saves an allocation each.
var userAgent, acceptJSON, oneHop = []string{domain.GatewayUserAgent}, []string{"application/json"}, []string{"1"}

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
	request.Header["User-Agent"], request.Header["Accept"] = userAgent, acceptJSON
	request.Header[domain.HopHeader] = oneHop
	if call.body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if p.Token != "" {
		request.Header.Set("Authorization", "Bearer "+p.Token.Reveal())
	}
	if call.etag != "" {
		request.Header.Set("If-None-Match", call.etag)
	}
	for name, values := range call.header {
		request.Header[name] = values
	}
	return request, nil
}
