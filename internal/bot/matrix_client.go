package bot

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/supervise"
)

// defaultRetry is the pause after a refusal for too many calls that names none.
const defaultRetry = 5 * time.Second

// matrixClient makes calls of the Matrix client-server API. It knows no session.
type matrixClient struct {
	http *http.Client
	base string // address of the client-server API, without a slash at its end
}

// matrixCall is one call. Its token goes into a header, never into the address.
type matrixCall struct {
	method string
	path   string // after /_matrix/client, its parts escaped
	query  url.Values
	token  domain.Secret
	body   any
	answer any // pointer to decode into, or nil
}

// matrixError is an answer that is no success.
type matrixError struct {
	status     int
	code       string // "" when it was no Matrix server that answered
	message    string
	retryAfter time.Duration
}

func (e *matrixError) Error() string {
	return fmt.Sprintf("status %d %s %s", e.status, e.code, e.message)
}

// accountErrors are what a homeserver says of the account or of itself, whichever room the call was for.
var accountErrors = []string{"M_RESOURCE_LIMIT_EXCEEDED", "M_CONSENT_NOT_GIVEN", "M_USER_DEACTIVATED", "M_USER_LOCKED", "M_USER_SUSPENDED"}

// ofRoom reports whether it is a homeserver's word on the room that the call was for. What a proxy answers whose homeserver
// is away says nothing of a room.
func (e *matrixError) ofRoom() bool {
	return e.code != "" && e.status != http.StatusUnauthorized && e.status != http.StatusRequestTimeout &&
		!slices.Contains(accountErrors, e.code)
}

// do makes one call. It returns *matrixError for an answer that is no success, BadGateway for none.
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
		return &matrixError{status: response.StatusCode, message: "the answer is not what Matrix servers send"}
	}
	return nil
}

func refusal(response *http.Response, text []byte) *matrixError {
	var fields struct {
		Code       string `json:"errcode"`
		Message    string `json:"error"`
		RetryAfter int64  `json:"retry_after_ms"`
	}
	_ = json.Unmarshal(text, &fields) // a proxy's HTML leaves them empty
	e := &matrixError{status: response.StatusCode, code: short(fields.Code, maxName), message: short(fields.Message, maxReason)}
	e.retryAfter = time.Duration(fields.RetryAfter) * time.Millisecond
	if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil {
		e.retryAfter = time.Duration(seconds) * time.Second
	}
	return e
}

// obeying makes a call again for as long as the server asks for fewer of them. It returns ctx's error when that ends first.
func obeying(ctx context.Context, call func() error) error {
	for {
		err := call()
		var refused *matrixError
		if !errors.As(err, &refused) || refused.status != http.StatusTooManyRequests {
			return err
		}
		if !supervise.Sleep(ctx, cmp.Or(max(refused.retryAfter, 0), defaultRetry)) {
			return ctx.Err()
		}
	}
}

// discover finds the client-server API of what somebody entered as the homeserver: an address or just a name,
// which may refer to another address by its /.well-known/matrix/client.
func discover(ctx context.Context, client *http.Client, entered string) (*matrixClient, error) {
	entered = strings.TrimRight(strings.TrimSpace(entered), "/")
	if !strings.Contains(entered, "://") {
		entered = "https://" + entered
	}
	address, err := url.Parse(entered)
	if err != nil || address.Host == "" || address.Scheme != "https" && address.Scheme != "http" {
		return nil, domain.Errorf(domain.Unauthorized, "Homeserver URL: must be like https://matrix.example.org. Correct it and save.")
	}
	direct := &matrixClient{client, entered}
	directErr := direct.probe(ctx)
	if directErr == nil {
		return direct, nil
	}
	if base := wellKnown(ctx, client, entered); base != "" {
		referred := &matrixClient{client, base}
		if referred.probe(ctx) == nil {
			return referred, nil
		}
	}
	var refused *matrixError
	if errors.As(directErr, &refused) {
		if refused.status >= http.StatusInternalServerError {
			return nil, domain.WrapError(domain.BadGateway, directErr, fmt.Sprintf("The homeserver at %s has a problem (status %d). The bot keeps trying.", address.Host, refused.status))
		}
		return nil, domain.WrapError(domain.BadGateway, directErr, fmt.Sprintf("%s answers, but is no Matrix homeserver. Check the Homeserver URL.", address.Host))
	}
	return nil, directErr
}

// probe reports whether a Matrix server answers.
func (c *matrixClient) probe(ctx context.Context) error {
	var answer struct {
		Versions []string `json:"versions"`
	}
	err := obeying(ctx, func() error {
		return c.do(ctx, matrixCall{method: http.MethodGet, path: "/versions", answer: &answer})
	})
	if err == nil && len(answer.Versions) == 0 {
		return &matrixError{status: http.StatusOK, message: "no versions"}
	}
	return err
}

// wellKnown returns the address that a server's name refers to, "" when it does not.
func wellKnown(ctx context.Context, client *http.Client, server string) string {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server+"/.well-known/matrix/client", nil)
	if err != nil {
		return ""
	}
	response, err := client.Do(request)
	if err != nil {
		return ""
	}
	defer response.Body.Close()
	var answer struct {
		Homeserver struct {
			BaseURL string `json:"base_url"`
		} `json:"m.homeserver"`
	}
	if response.StatusCode != http.StatusOK || json.NewDecoder(io.LimitReader(response.Body, 1<<16)).Decode(&answer) != nil {
		return ""
	}
	base := strings.TrimRight(answer.Homeserver.BaseURL, "/")
	if u, err := url.Parse(base); err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return ""
	}
	return base
}
