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
	// callLimit is the time limit of one request to the provider.
	callLimit = 10 * time.Second
	// maxAnswer is the size limit of the provider's responses, in bytes.
	maxAnswer = 1 << 20
)

// newHTTPClient returns a client for the provider, which uses the environment's proxy. Logins are rare, so no
// connection is kept.
func newHTTPClient() *http.Client {
	return &http.Client{
		Timeout: callLimit,
		Transport: bounded{&http.Transport{
			Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, MaxResponseHeaderBytes: maxAnswer,
			ForceAttemptHTTP2: true,
		}},
		// A redirect would send the code and the client secret elsewhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// bounded makes reading a response fail once it is longer than maxAnswer.
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

// refused returns the error for a callback in which the provider refuses the login.
func (p *Provider) refused(callback url.Values) error {
	reason := callback.Get("error")
	if more := callback.Get("error_description"); more != "" {
		reason += ", " + more
	}
	return domain.Errorf(domain.Invalid, "%s did not let you in: %s.", p.host, domain.Cut(reason, maxForeign))
}

// failure returns a BadGateway error that users may read. Its cause, for the log, quotes nothing that was sent to the
// provider: a response may repeat a code or a secret.
func (p *Provider) failure(err error) error {
	var refused *oauth2.RetrieveError
	var wrong untrusted
	var call *url.Error
	var tooLong *http.MaxBytesError
	var text string
	switch {
	case errors.As(err, &refused):
		err = fmt.Errorf("HTTP status %d, error %q", refused.Response.StatusCode, domain.Cut(refused.ErrorCode, maxForeign))
		text = "does not accept this login"
	case strings.Contains(err.Error(), "fetching keys"): // the library has no error type for it
		text = "does not provide its keys"
	case errors.As(err, &wrong):
		text = "sent a token that cannot be trusted"
	case errors.As(err, &tooLong):
		text = "sends too long an answer"
	case errors.As(err, &call), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		text = "does not answer (" + neterr.Describe(err, callLimit) + ")"
		err = nil
	default:
		text = "sends an answer that is not OpenID Connect"
	}
	if err != nil {
		err = errors.New(domain.Cut(err.Error(), maxForeign))
	}
	return domain.WrapError(domain.BadGateway, err, p.host+" "+text+". Try again in a minute, or log in with a token.")
}

// maxForeign is the length of a text from outside that is shown, in characters.
const maxForeign = 200
