package login

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"switchyard/internal/domain"
	"switchyard/internal/neterr"
)

const (
	// callLimit bounds one request to the provider.
	callLimit = 10 * time.Second
	// maxAnswer is the longest answer of the provider that is read, in bytes.
	maxAnswer = 1 << 20
)

// newHTTPClient returns a client for the provider, which may well be behind a proxy. Logins are rare, so no connection is
// kept.
func newHTTPClient() *http.Client {
	return &http.Client{
		Timeout: callLimit,
		Transport: bounded{&http.Transport{
			Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, MaxResponseHeaderBytes: maxAnswer, ForceAttemptHTTP2: true,
		}},
		// A redirect would carry the code and the client secret elsewhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// bounded ends answers that are too long with an error.
type bounded struct{ http.RoundTripper }

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := b.RoundTripper.RoundTrip(r)
	if err == nil {
		response.Body = http.MaxBytesReader(nil, response.Body, maxAnswer)
	}
	return response, err
}

func (p *Provider) withHTTP(ctx context.Context) context.Context {
	return oidc.ClientContext(ctx, p.http)
}

// refused is the provider's no in a callback.
func (p *Provider) refused(callback url.Values) error {
	reason := callback.Get("error")
	if more := callback.Get("error_description"); more != "" {
		reason += ", " + more
	}
	return domain.Errorf(domain.Invalid, "%s did not let you in: %s.", p.host, shorten(reason))
}

// failure returns what went wrong as people may read it. Its cause is for the log and holds nothing that the provider was sent: an
// answer may well repeat a code or a secret.
func (p *Provider) failure(err error) error {
	var refused *oauth2.RetrieveError
	var wrong untrusted
	var call *url.Error
	var tooLong *http.MaxBytesError
	var text string
	switch {
	case errors.As(err, &refused):
		err = fmt.Errorf("HTTP status %d, error %q", refused.Response.StatusCode, shorten(refused.ErrorCode))
		text = "does not accept this login"
	case strings.Contains(err.Error(), "fetching keys"): // the library hides what went wrong behind a text
		text = "does not hand out its keys"
	case errors.As(err, &wrong):
		text = "sent a token that cannot be trusted"
	case errors.As(err, &tooLong):
		text = "gives an answer that is too long"
	case errors.As(err, &call), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		text = "does not answer (" + neterr.Describe(err, callLimit) + ")"
		err = nil
	default:
		text = "gives an answer that is not OpenID Connect"
	}
	if err != nil {
		err = errors.New(shorten(err.Error()))
	}
	return domain.WrapError(domain.BadGateway, err, p.host+" "+text+". Try again in a minute, or log in with a token.")
}

// shorten cuts what came from outside.
func shorten(text string) string {
	const longest = 200
	if characters := []rune(text); len(characters) > longest {
		return string(characters[:longest]) + "…"
	}
	return text
}
