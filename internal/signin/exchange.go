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
	// exchangeTimeout limits the whole exchange, including the response's body.
	exchangeTimeout = 15 * time.Second
	// maxTokenResponse is the size limit of a response's body, in bytes.
	maxTokenResponse = 1 << 20
)

// newTransport returns a transport for the identity provider, which uses the environment's proxy. Exchanges are rare,
// so no connection is kept. Compression is off, so that the size limit also holds on the wire.
func newTransport() *http.Transport {
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DisableKeepAlives:      true,
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxTokenResponse,
		ForceAttemptHTTP2:      true,
	}
}

// exchange calls the token endpoint. Every error is a *domain.SignInError.
func (c *Client) exchange(ctx context.Context, f domain.SignInFlow, code, state string) (tokenResponse, error) {
	if c.config.TokenURL == "" {
		return tokenResponse{}, &domain.SignInError{
			Outcome: domain.SignInUnreachable, Detail: "no token address is set: sign_in.token_url",
		}
	}
	ctx, cancel := context.WithTimeout(ctx, exchangeTimeout)
	defer cancel()
	contentType, body := c.config.tokenRequest(f, code, state)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.config.TokenURL, strings.NewReader(body))
	if err != nil {
		return tokenResponse{}, &domain.SignInError{
			Outcome: domain.SignInUnreachable, Detail: "its token address is not valid",
		}
	}
	request.Header.Set("Content-Type", contentType)
	request.Header.Set("Accept", "application/json")
	// The bare transport follows no redirects, which would send the verifier elsewhere, and unlike http.Client's its
	// errors do not quote the address.
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
