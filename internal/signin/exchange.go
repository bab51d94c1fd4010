package signin

import (
	"context"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

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

// exchange calls the token endpoint. Every error is a domain.SignInResult.
func (c *Client) exchange(ctx context.Context, f domain.SignInFlow, code, state string) (domain.Credentials, error) {
	if c.config.TokenURL == "" {
		return domain.Credentials{}, failed(domain.SignInUnreachable, "no token address is set: sign_in.token_url")
	}
	ctx, cancel := context.WithTimeout(ctx, exchangeTimeout)
	defer cancel()
	contentType, body := c.tokenRequest(f, code, state)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.config.TokenURL, strings.NewReader(body))
	if err != nil {
		return domain.Credentials{}, failed(domain.SignInUnreachable, "its token address is not valid")
	}
	request.Header.Set("Content-Type", contentType)
	request.Header.Set("Accept", "application/json")
	// The bare transport follows no redirects, which would send the verifier elsewhere, and unlike http.Client's its
	// errors do not quote the address.
	response, err := c.transport.RoundTrip(request)
	if err != nil {
		return domain.Credentials{}, failed(domain.SignInUnreachable, neterr.Describe(err, exchangeTimeout))
	}
	defer response.Body.Close()
	data, err := io.ReadAll(io.LimitReader(response.Body, maxTokenResponse+1))
	reported := reportedError(data, code, state, f.Verifier.Reveal())
	if response.StatusCode < 200 || response.StatusCode > 299 {
		status := strings.TrimSpace(strconv.Itoa(response.StatusCode) + " " + http.StatusText(response.StatusCode))
		return domain.Credentials{}, failed(domain.SignInRefused, status, reported)
	}
	if err != nil {
		return domain.Credentials{}, failed(domain.SignInUnreachable, neterr.Describe(err, exchangeTimeout))
	}
	if len(data) > maxTokenResponse {
		return domain.Credentials{}, failed(domain.SignInUnreadable, "the answer is larger than 1 MiB")
	}
	credentials, problem := parseTokenResponse(data, time.Now())
	if problem != "" {
		return domain.Credentials{}, failed(domain.SignInUnreadable, problem, reported)
	}
	credentials.Scopes = c.scopes()
	return credentials, nil
}

// failed returns the error with the parts of its detail that are not empty.
func failed(outcome domain.SignInOutcome, detail ...string) error {
	return domain.SignInResult{Outcome: outcome, Detail: joinNonEmpty(detail...)}
}

func (c *Client) tokenRequest(f domain.SignInFlow, code, state string) (contentType, body string) {
	fields := map[string]string{
		"grant_type": "authorization_code", "code": code, "client_id": c.config.ClientID, "redirect_uri": f.RedirectURI,
		"code_verifier": f.Verifier.Reveal(),
	}
	if c.config.TokenFormat == "form" { // RFC 6749, section 4.1.3
		form := url.Values{}
		for name, value := range fields {
			form.Set(name, value)
		}
		return "application/x-www-form-urlencoded", form.Encode()
	}
	fields["state"] = state
	data, _ := json.Marshal(fields) // strings always encode
	return "application/json", string(data)
}

// parseTokenResponse reads a token response strictly: field names are exact, expires_in is an integer from 0 to 2^64-1.
// The problem is "" when the response is valid.
func parseTokenResponse(data []byte, received time.Time) (c domain.Credentials, problem string) {
	var fields map[string]json.RawMessage
	if !utf8.Valid(data) || json.Unmarshal(data, &fields) != nil || fields == nil {
		return c, "the answer is not a JSON object"
	}
	// Unmarshal leaves "" for null.
	if json.Unmarshal(orNull(fields["access_token"]), &c.AccessToken) != nil || c.AccessToken == "" {
		return c, "access_token is missing or not a string"
	}
	if json.Unmarshal(orNull(fields["refresh_token"]), &c.RefreshToken) != nil {
		return c, "refresh_token is not a string"
	}
	seconds, err := parseUnsigned(fields["expires_in"])
	if err != nil {
		return c, "expires_in is missing or not a whole number of seconds"
	}
	c.ExpiresAt = expiry(received, seconds)
	return c, ""
}

func orNull(raw json.RawMessage) json.RawMessage {
	if raw == nil {
		return json.RawMessage("null")
	}
	return raw
}

// parseUnsigned reads a JSON number written as an integer. json.Number would accept the string "3600" as well.
func parseUnsigned(raw json.RawMessage) (uint64, error) {
	return strconv.ParseUint(string(raw), 10, 64)
}

// expiry returns received + seconds in Unix milliseconds, at most 2^64-1 instead of wrapping around.
func expiry(received time.Time, seconds uint64) uint64 {
	now := uint64(received.UnixMilli())
	if seconds > (math.MaxUint64-now)/1000 {
		return math.MaxUint64
	}
	return now + seconds*1000
}

// maxReported is where an error from the token endpoint is cut, in characters.
const maxReported = 512

// reportedError returns the error that a response reports (RFC 6749, section 5.2), "" for none. Some providers quote
// the request, so the given secrets are removed.
func reportedError(data []byte, secrets ...string) string {
	var fields map[string]json.RawMessage
	if json.Unmarshal(data, &fields) != nil {
		return ""
	}
	var code, description string
	_ = json.Unmarshal(orNull(fields["error"]), &code) // ignored unless it is a string
	_ = json.Unmarshal(orNull(fields["error_description"]), &description)
	text := joinNonEmpty(code, description)
	for _, secret := range secrets {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "…")
		}
	}
	return domain.Truncate(text, maxReported)
}

func joinNonEmpty(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(text string) bool { return text == "" }), ": ")
}
