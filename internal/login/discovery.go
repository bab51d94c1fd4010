package login

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"switchyard/internal/clock"
	"switchyard/internal/config"
	"switchyard/internal/domain"
	"switchyard/internal/neterr"
)

// discoverAgain is how long the discovery document is cached.
const discoverAgain = time.Hour

type endpoints struct {
	config   config.Login
	provider *oidc.Provider
	verifier *oidc.IDTokenVerifier
	style    oauth2.AuthStyle
	scopes   []string
}

// endpoints returns the provider's endpoints, the previous ones when it does not answer. Concurrent callers share one
// request.
func (p *Provider) endpoints(ctx context.Context) (*endpoints, error) {
	p.mu.Lock()
	known, asked := p.known, p.asked
	p.mu.Unlock()
	if known != nil && time.Since(asked) < discoverAgain {
		return known, nil
	}
	discovered := p.discovery.DoChan("", func() (any, error) {
		e, err := p.discover(context.WithoutCancel(ctx))
		p.mu.Lock()
		defer p.mu.Unlock()
		if err == nil {
			p.known = e
		}
		if p.known != nil {
			p.asked = time.Now()
			return p.known, nil
		}
		return nil, err
	})
	select {
	case <-ctx.Done():
		return nil, p.failure(ctx.Err())
	case result := <-discovered:
		if result.Err != nil {
			return nil, p.failure(result.Err)
		}
		return result.Val.(*endpoints), nil
	}
}

// fresh returns the endpoints after a discovery that is later than old's.
func (p *Provider) fresh(ctx context.Context, old *endpoints) (*endpoints, error) {
	p.mu.Lock()
	if p.known == old {
		p.asked = time.Time{}
	}
	p.mu.Unlock()
	return p.endpoints(ctx)
}

// discover fetches the discovery document. The HTTP client's timeout limits how long that takes.
func (p *Provider) discover(ctx context.Context) (*endpoints, error) {
	provider, err := oidc.NewProvider(p.withHTTP(ctx), p.config.Issuer)
	if err != nil {
		return nil, err
	}
	var more struct {
		Scopes  []string `json:"scopes_supported"`
		Methods []string `json:"token_endpoint_auth_methods_supported"`
		KeysURL string   `json:"jwks_uri"`
	}
	if err := provider.Claims(&more); err != nil {
		return nil, err
	}
	for _, address := range []string{provider.Endpoint().AuthURL, provider.Endpoint().TokenURL, more.KeysURL} {
		if u, err := url.Parse(address); err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
			return nil, errors.New("the discovery document lacks an address")
		}
	}
	e := &endpoints{
		config: p.config, provider: provider, style: oauth2.AuthStyleInHeader, scopes: []string{oidc.ScopeOpenID},
	}
	e.verifier = provider.Verifier(&oidc.Config{ClientID: p.config.ClientID, Now: clock.Now})
	if p.config.ClientSecret == "" || len(more.Methods) > 0 && !slices.Contains(more.Methods, "client_secret_basic") {
		e.style = oauth2.AuthStyleInParams
	}
	// Some providers refuse unknown scopes, others return groups only when that scope is requested.
	for _, scope := range []string{"profile", "email", p.config.RolesClaim} {
		usual := len(more.Scopes) == 0 && scope != p.config.RolesClaim
		if (usual || slices.Contains(more.Scopes, scope)) && !slices.Contains(e.scopes, scope) {
			e.scopes = append(e.scopes, scope)
		}
	}
	return e, nil
}

func (e *endpoints) client(redirectURI string) *oauth2.Config {
	endpoint := e.provider.Endpoint()
	endpoint.AuthStyle = e.style
	return &oauth2.Config{
		ClientID: e.config.ClientID, ClientSecret: e.config.ClientSecret.Reveal(), Endpoint: endpoint,
		RedirectURL: redirectURI, Scopes: e.scopes,
	}
}

const (
	// callLimit is the time limit of one request to the provider.
	callLimit = 10 * time.Second
	// maxAnswer is the size limit of the provider's responses, in bytes.
	maxAnswer = 1 << 20
)

// newHTTPClient returns a client for the provider, which uses the environment's proxy. Logins are rare, so no
// connection is kept.
func newHTTPClient() *http.Client {
	client := neterr.Client(&http.Transport{
		Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, MaxResponseHeaderBytes: maxAnswer,
		ForceAttemptHTTP2: true,
	}, maxAnswer)
	client.Timeout = callLimit
	return client
}

func (p *Provider) withHTTP(ctx context.Context) context.Context {
	return oidc.ClientContext(ctx, p.http)
}

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
	var wrong tokenError
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

// maxForeign is how much of a text from outside is shown, in characters.
const maxForeign = 200
