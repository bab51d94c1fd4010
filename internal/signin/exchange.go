package signin

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/neterr"
)

const (
	// exchangeTimeout is the time for the whole answer, its body included.
	exchangeTimeout = 15 * time.Second
	// maxTokenResponse is the longest body that is read, in bytes.
	maxTokenResponse = 1 << 20
)

// newTransport returns a transport for the identity provider, which may well be behind a proxy. Exchanges are
// rare, so no connection is kept. Compression is not asked for: the limit then holds for what is on the wire too.
func newTransport() *http.Transport {
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DisableKeepAlives:      true,
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxTokenResponse,
		ForceAttemptHTTP2:      true,
	}
}

// exchange asks the token endpoint. Every error is a *domain.SignInError.
func (c *Client) exchange(ctx context.Context, f domain.SignInFlow, code, state string) (tokenResponse, error) {
	if c.config.TokenURL == "" {
		return tokenResponse{}, &domain.SignInError{Outcome: domain.SignInUnreachable, Detail: "no token address is set: sign_in.token_url"}
	}
	ctx, cancel := context.WithTimeout(ctx, exchangeTimeout)
	defer cancel()
	contentType, body := c.config.tokenRequest(f, code, state)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.config.TokenURL, strings.NewReader(body))
	if err != nil {
		return tokenResponse{}, &domain.SignInError{Outcome: domain.SignInUnreachable, Detail: "its token address is not valid"}
	}
	request.Header.Set("Content-Type", contentType)
	request.Header.Set("Accept", "application/json")
	// The bare transport follows no redirect, which would take the verifier elsewhere, and its errors do not quote
	// the address as http.Client's do.
	response, err := c.transport.RoundTrip(request)
	if err != nil {
		return tokenResponse{}, unreachable(err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(io.LimitReader(response.Body, maxTokenResponse+1))
	reported := reportedError(data, code, state, f.Verifier.Reveal())
	if response.StatusCode < 200 || response.StatusCode > 299 {
		status := strings.TrimSpace(strconv.Itoa(response.StatusCode) + " " + http.StatusText(response.StatusCode))
		return tokenResponse{}, &domain.SignInError{Outcome: domain.SignInRefused, Detail: joinNonEmpty(status, reported)}
	}
	if err != nil {
		return tokenResponse{}, unreachable(err)
	}
	if len(data) > maxTokenResponse {
		return tokenResponse{}, unreadable("the answer is larger than 1 MiB")
	}
	answer, problem := parseTokenResponse(data)
	if problem != "" {
		return tokenResponse{}, unreadable(joinNonEmpty(problem, reported))
	}
	return answer, nil
}

func unreachable(err error) error {
	return &domain.SignInError{Outcome: domain.SignInUnreachable, Detail: neterr.Describe(err, exchangeTimeout)}
}

func unreadable(why string) error {
	return &domain.SignInError{Outcome: domain.SignInUnreadable, Detail: why}
}
