package upstream

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"switchyard/internal/domain"
)

// call is one request to a project server.
type call struct {
	method string        // "" is GET
	path   string        // begins with a slash, its segments escaped
	query  string        // escaped
	etag   string        // sent as If-None-Match unless ""
	body   []byte        // JSON, nil for none
	header http.Header   // added to the request's header, replacing its fields; may be nil
	wait   time.Duration // how long the server was asked to hold its answer; added to the client's timeout
	any    bool          // accept every status but a redirect or 401; otherwise only 200, and 304 to an ETag
}

// answer is what a project server answered.
type answer struct {
	status int
	header http.Header
	body   []byte // at most maxAnswer; valid until read returns
}

// do makes the call and passes the answer to read, whose error it returns. If ctx ends it returns ctx's error; every other
// failure is a BadGateway error with a message for people.
func (c *Client) do(ctx context.Context, p domain.Project, call call, read func(answer) error) error {
	transport := c.transportFor(p, call)
	bounded, begun, cancel := transport.bound(ctx, c.timeout, call.wait)
	defer cancel()
	err := c.send(bounded, begun, transport, p, call, read)
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	end, _ := bounded.Deadline()
	// The error of an incomplete status line hides that the time ran out.
	late := bounded.Err() != nil || errors.Is(err, os.ErrDeadlineExceeded) || !time.Now().Before(end)
	return explain(err, late, c.timeout)
}

func (c *Client) send(ctx context.Context, begun func(), t transport, p domain.Project, call call, read func(answer) error) error {
	request, err := newRequest(ctx, p, call)
	if err != nil {
		return err
	}
	response, err := t.RoundTrip(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	begun()
	if response.StatusCode == http.StatusNotModified && call.etag != "" {
		return read(answer{status: response.StatusCode, header: response.Header})
	}
	if err := checkStatus(response, call.any); err != nil {
		return err
	}
	body, release, err := c.slots.readBody(ctx, response, c.timeout)
	defer release()
	if err != nil {
		return err
	}
	return read(answer{response.StatusCode, response.Header, body})
}

// Headers that never change, which saves an allocation each.
var userAgent, acceptJSON = []string{domain.GatewayUserAgent}, []string{"application/json"}

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
	request.Header["User-Agent"], request.Header["Accept"] = userAgent, acceptJSON
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
