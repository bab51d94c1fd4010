package matrix

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

	"switchyard/internal/bot"
	"switchyard/internal/domain"
)

// defaultRetry is the pause after a rate limit that names none.
const defaultRetry = 5 * time.Second

// apiClient makes calls to the Matrix client-server API. It has no session.
type apiClient struct {
	http    *http.Client
	base    string // address of the API
	created time.Time
}

// apiCall is one call. Its token goes into a header, never into the address.
type apiCall struct {
	method string
	path   string // its segments escaped
	query  url.Values
	token  domain.Secret
	body   any
	answer any // pointer to decode into, or nil
}

// do makes a call. It waits out rate limits, and ends a call that writes before the bot stops. It returns *apiError for
// an answer other than 200, and BadGateway if there is none.
func (c *apiClient) do(ctx context.Context, call apiCall) error {
	return bot.WaitOut(ctx, func() error {
		if call.method != http.MethodGet && call.token != "" {
			return bot.Finish(ctx, func(ctx context.Context) error { return c.once(ctx, call) })
		}
		ctx, cancel := context.WithTimeout(ctx, bot.CallLimit)
		defer cancel()
		return c.once(ctx, call)
	}, func(err error) (time.Duration, bool) {
		refused := asRefusal(err)
		return cmp.Or(refused.retryAfter, defaultRetry), refused.status == http.StatusTooManyRequests
	})
}

func (c *apiClient) once(ctx context.Context, call apiCall) error {
	var body io.Reader
	if call.body != nil {
		body = bytes.NewReader(domain.EncodeJSON(call.body))
	}
	address := c.base + call.path
	if len(call.query) > 0 {
		address += "?" + call.query.Encode()
	}
	request, err := http.NewRequestWithContext(ctx, call.method, address, body)
	if err != nil {
		return err
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if call.token != "" {
		request.Header.Set("Authorization", "Bearer "+call.token.Reveal())
	}
	response, err := c.http.Do(request)
	var text []byte
	if err == nil {
		defer response.Body.Close()
		text, err = io.ReadAll(response.Body)
	}
	if err != nil {
		return bot.Unreachable(err, request.URL.Host)
	}
	if response.StatusCode != http.StatusOK {
		return refusal(response, text)
	}
	if call.answer != nil && json.Unmarshal(text, call.answer) != nil {
		return &apiError{status: response.StatusCode, message: "the answer is not that of a Matrix server"}
	}
	return nil
}

// apiError is an answer that refuses the call or cannot be understood.
type apiError struct {
	status     int
	code       string // "" if what answered is not a Matrix server
	message    string
	retryAfter time.Duration
}

func (e *apiError) Error() string {
	return strings.Join(strings.Fields(fmt.Sprintf("status %d %s %s", e.status, e.code, e.message)), " ")
}

func refusal(response *http.Response, text []byte) *apiError {
	var fields struct {
		Code       string `json:"errcode"`
		Message    string `json:"error"`
		RetryAfter int64  `json:"retry_after_ms"`
	}
	_ = json.Unmarshal(text, &fields) // they stay empty for a proxy's HTML
	e := &apiError{
		status: response.StatusCode, retryAfter: time.Duration(fields.RetryAfter) * time.Millisecond,
		code: bot.Short(fields.Code, bot.MaxName), message: bot.Short(fields.Message, bot.MaxReason),
	}
	if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil {
		e.retryAfter = time.Duration(seconds) * time.Second
	}
	return e
}

// accountErrors are error codes about the account or the homeserver rather than about the call's room.
var accountErrors = []string{
	"M_RESOURCE_LIMIT_EXCEEDED", "M_CONSENT_NOT_GIVEN", "M_USER_DEACTIVATED", "M_USER_LOCKED", "M_USER_SUSPENDED",
}

func asRefusal(err error) *apiError {
	if refused, ok := errors.AsType[*apiError](err); ok {
		return refused
	}
	return &apiError{}
}

// isAboutRoom reports whether the answer is the homeserver's and about the call's room. The answer of a proxy whose
// homeserver is down says nothing about a room.
func (e *apiError) isAboutRoom() bool {
	return e.code != "" && e.status != http.StatusUnauthorized && e.status != http.StatusRequestTimeout &&
		!slices.Contains(accountErrors, e.code)
}

// isRefusedByRoom reports whether a room would refuse the call again.
func (e *apiError) isRefusedByRoom() bool {
	return e.isAboutRoom() && e.status >= http.StatusBadRequest && e.status < http.StatusInternalServerError
}

func explain(err error) error {
	if refused := asRefusal(err); refused.status != 0 {
		return domain.WrapError(domain.BadGateway, err,
			"The homeserver answers with "+refused.Error()+". The bot keeps trying.")
	}
	return err
}

// discover finds the client-server API of the configured homeserver: an address, or just a name, whose
// /.well-known/matrix/client may point to another address.
func discover(ctx context.Context, client *http.Client, entered string) (*apiClient, error) {
	entered = strings.TrimRight(strings.TrimSpace(entered), "/")
	if !strings.Contains(entered, "://") {
		entered = "https://" + entered
	}
	if !isAddress(entered) {
		return nil, domain.Errorf(domain.Unauthorized,
			"Homeserver URL: must be like https://matrix.example.org. Correct it and save.")
	}
	direct, err := probe(ctx, client, entered)
	if err == nil {
		return direct, nil
	}
	if base := wellKnown(ctx, client, entered); base != "" {
		if referred, err := probe(ctx, client, base); err == nil {
			return referred, nil
		}
	}
	_, host, _ := strings.Cut(entered, "://")
	switch status := asRefusal(err).status; {
	case status >= http.StatusInternalServerError:
		err = domain.WrapError(domain.BadGateway, err,
			fmt.Sprintf("The homeserver at %s has a problem (status %d). The bot keeps trying.", host, status))
	case status > 0:
		err = domain.WrapError(domain.BadGateway, err,
			host+" answers, but is not a Matrix homeserver. Check the Homeserver URL.")
	}
	return nil, err
}

func isAddress(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Host != "" && (u.Scheme == "https" || u.Scheme == "http")
}

// probe returns a client of the Matrix server at an address, an error if there is none.
func probe(ctx context.Context, client *http.Client, address string) (*apiClient, error) {
	var answer struct {
		Versions []string `json:"versions"`
	}
	c := &apiClient{client, address + "/_matrix/client", time.Now()}
	err := c.do(ctx, apiCall{method: http.MethodGet, path: "/versions", answer: &answer})
	if err == nil && len(answer.Versions) == 0 {
		err = &apiError{status: http.StatusOK, message: "no versions"}
	}
	return c, err
}

// wellKnown returns the address in a server's /.well-known/matrix/client, "" for none.
func wellKnown(ctx context.Context, client *http.Client, server string) string {
	var answer struct {
		Homeserver struct {
			BaseURL string `json:"base_url"`
		} `json:"m.homeserver"`
	}
	c := &apiClient{http: client, base: server}
	err := c.once(ctx, apiCall{method: http.MethodGet, path: "/.well-known/matrix/client", answer: &answer})
	base := strings.TrimRight(answer.Homeserver.BaseURL, "/")
	if err != nil || !isAddress(base) {
		return ""
	}
	return base
}
