package bot

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/supervise"
)

// defaultRetry is the pause after a rate limit that names none.
const defaultRetry = 5 * time.Second

// matrixClient makes calls to the Matrix client-server API. It has no session.
type matrixClient struct {
	http *http.Client
	base string // address of the client-server API, without a trailing slash
}

// matrixCall is one call. Its token goes into a header, never into the address.
type matrixCall struct {
	method string
	path   string // after /_matrix/client, its segments escaped
	query  url.Values
	token  domain.Secret
	body   any
	answer any // pointer to decode into, or nil
}

// do makes one call. It returns *matrixError for an answer other than 200, BadGateway for none.
func (c *matrixClient) do(ctx context.Context, call matrixCall) error {
	var body io.Reader
	if call.body != nil {
		encoded, err := json.Marshal(call.body)
		if err != nil {
			return err
		}
		body = bytes.NewReader(encoded)
	}
	address := c.base + "/_matrix/client" + call.path
	if len(call.query) > 0 {
		address += "?" + call.query.Encode()
	}
	request, err := http.NewRequestWithContext(ctx, call.method, address, body)
	if err != nil {
		return domain.WrapError(domain.Unauthorized, err, "Homeserver URL: is not a valid address.")
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if call.token != "" {
		request.Header.Set("Authorization", "Bearer "+call.token.Reveal())
	}
	response, err := c.http.Do(request)
	if err != nil {
		return unreachable(err, request.URL.Host)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return unreachable(err, request.URL.Host)
	}
	if response.StatusCode != http.StatusOK {
		return refusal(response, text)
	}
	if call.answer == nil {
		return nil
	}
	if err := json.Unmarshal(text, call.answer); err != nil {
		return &matrixError{status: response.StatusCode, message: "the answer is not that of a Matrix server"}
	}
	return nil
}

// waitOut repeats a call for as long as the server answers with a rate limit. It returns ctx's error when ctx ends
// first.
func waitOut(ctx context.Context, call func() error) error {
	for {
		err := call()
		var refused *matrixError
		if !errors.As(err, &refused) || refused.status != http.StatusTooManyRequests {
			return err
		}
		if !supervise.Sleep(ctx, max(minRetry, cmp.Or(refused.retryAfter, defaultRetry))) {
			return ctx.Err()
		}
	}
}
