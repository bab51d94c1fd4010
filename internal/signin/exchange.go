package signin

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"math"
	"math/bits"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

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

type tokenRequest struct {
	GrantType    string `json:"grant_type"`
	Code         string `json:"code"`
	ClientID     string `json:"client_id"`
	RedirectURI  string `json:"redirect_uri"`
	CodeVerifier string `json:"code_verifier"`
	State        string `json:"state"`
}

type tokenResponse struct {
	accessToken  string
	refreshToken string // "" when there is none
	expiresIn    uint64 // seconds
}

// exchange asks the token endpoint. Every error is a *domain.SignInError.
func (c *Client) exchange(ctx context.Context, f flow, code, state string) (tokenResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, exchangeTimeout)
	defer cancel()
	body, err := json.Marshal(tokenRequest{"authorization_code", code, c.config.ClientID, f.redirectURI, f.verifier, state})
	if err != nil { // only a programming mistake can get here
		panic(err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.config.TokenURL, bytes.NewReader(body))
	if err != nil {
		return tokenResponse{}, &domain.SignInError{Outcome: domain.SignInUnreachable, Detail: "its token address is not valid"}
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json")
	// The bare transport follows no redirect, which would take the verifier elsewhere, and its errors do not quote
	// the address as http.Client's do.
	response, err := c.transport.RoundTrip(request)
	if err != nil {
		return tokenResponse{}, unreachable(err)
	}
	defer response.Body.Close()
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return tokenResponse{}, &domain.SignInError{Outcome: domain.SignInRefused, Detail: strings.TrimSpace(strconv.Itoa(response.StatusCode) + " " + http.StatusText(response.StatusCode))}
	}
	data, err := io.ReadAll(io.LimitReader(response.Body, maxTokenResponse+1))
	if err != nil {
		return tokenResponse{}, unreachable(err)
	}
	if len(data) > maxTokenResponse {
		return tokenResponse{}, unreadable("the answer is larger than 1 MiB")
	}
	return parseTokenResponse(data)
}

func unreachable(err error) error {
	return &domain.SignInError{Outcome: domain.SignInUnreachable, Detail: neterr.Describe(err, exchangeTimeout)}
}

func unreadable(why string) error {
	return &domain.SignInError{Outcome: domain.SignInUnreadable, Detail: why}
}

// parseTokenResponse reads a token response strictly: field names are exact, expires_in is an integer from 0 to 2^64-1.
func parseTokenResponse(data []byte) (tokenResponse, error) {
	var fields map[string]json.RawMessage
	if !utf8.Valid(data) || json.Unmarshal(data, &fields) != nil || fields == nil {
		return tokenResponse{}, unreadable("the answer is not a JSON object")
	}
	var t tokenResponse // where a field is null, Unmarshal leaves ""
	if json.Unmarshal(orNull(fields["access_token"]), &t.accessToken) != nil || t.accessToken == "" {
		return tokenResponse{}, unreadable("access_token is missing or not a text")
	}
	if json.Unmarshal(orNull(fields["refresh_token"]), &t.refreshToken) != nil {
		return tokenResponse{}, unreadable("refresh_token is not a text")
	}
	var err error
	if t.expiresIn, err = parseUnsigned(fields["expires_in"]); err != nil {
		return tokenResponse{}, unreadable("expires_in is missing or not a whole number of seconds")
	}
	return t, nil
}

func orNull(raw json.RawMessage) json.RawMessage {
	if raw == nil {
		return json.RawMessage("null")
	}
	return raw
}

// parseUnsigned reads a JSON number that is written as an integer. json.Number would take the string "3600" as well.
func parseUnsigned(raw json.RawMessage) (uint64, error) {
	return strconv.ParseUint(string(raw), 10, 64)
}

// expiry is received + seconds as Unix milliseconds; it stops at 2^64-1 instead of wrapping into the past.
func expiry(received time.Time, seconds uint64) uint64 {
	high, millis := bits.Mul64(seconds, 1000)
	sum, carry := bits.Add64(millis, uint64(received.UnixMilli()), 0)
	if high != 0 || carry != 0 {
		return math.MaxUint64
	}
	return sum
}
