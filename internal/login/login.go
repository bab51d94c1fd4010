// Package login lets people log in to the console through an OpenID Connect provider: the code flow with PKCE, state
// and nonce. It is unrelated to the sign-in (package signin), which gets tokens for the gateway itself. It must know
// neither pages, cookies nor sessions.
package login

import (
	"container/list"
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"net/url"
	"sync"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/sync/singleflight"

	"switchyard/internal/clock"
	"switchyard/internal/config"
	"switchyard/internal/domain"
)

const (
	// AttemptTime is how long a login may take, from its start to the callback.
	AttemptTime = 10 * time.Minute
	// callbackLimit is the time limit of all requests that a callback makes to the provider: tokens, keys and user info.
	callbackLimit = 15 * time.Second
	// maxCallbacks is how many callbacks are handled at once, since anybody can send them. One more ends the one that has
	// taken longest: an honest one takes a moment.
	maxCallbacks = 32
)

// Provider is an OpenID Connect provider. It is safe for concurrent use.
type Provider struct {
	config    config.Login
	spend     func(ctx context.Context, state string) (first bool, err error)
	host      string // of the issuer, shown to people
	http      *http.Client
	discovery singleflight.Group

	mu        sync.Mutex
	callbacks list.List  // the cancel functions of those that are being handled, oldest first
	known     *endpoints // nil before the first discovery
	asked     time.Time  // when the document was last requested
}

// Attempt is a login in progress. Only the browser that began it may have it.
type Attempt struct {
	State    string `json:"s"`
	Nonce    string `json:"n"`
	Verifier string `json:"v"`
	BeganMS  int64  `json:"t"`
}

// New returns the provider that c describes. The first request to it is made when somebody logs in. spend records, for
// as long as it could be replayed, that the callback of the login with a state has arrived, and reports whether it is
// the first.
func New(c config.Login, spend func(ctx context.Context, state string) (first bool, err error)) *Provider {
	p := &Provider{config: c, spend: spend, http: newHTTPClient()}
	if issuer, err := url.Parse(c.Issuer); err == nil {
		p.host = issuer.Host
	}
	return p
}

func (p *Provider) Host() string { return p.host }

// Begin begins a login that returns to redirectURI, and returns the address to which to send the browser. It returns
// BadGateway when the provider fails.
func (p *Provider) Begin(ctx context.Context, redirectURI string) (address string, a Attempt, err error) {
	e, err := p.endpoints(ctx)
	if err != nil {
		return "", Attempt{}, err
	}
	a = Attempt{
		State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier(),
		BeganMS: clock.Now().UnixMilli(),
	}
	client := e.client(redirectURI)
	return client.AuthCodeURL(a.State, oauth2.S256ChallengeOption(a.Verifier), oauth2.SetAuthURLParam("nonce", a.Nonce)),
		a, nil
}

// Finish completes a login, once, with the parameters of its callback, and returns who has logged in. It returns
// Invalid for a callback that does not confirm this attempt, BadGateway when the provider fails or its tokens cannot be
// trusted, and Forbidden for a user without a role.
func (p *Provider) Finish(
	ctx context.Context, a Attempt, redirectURI string, callback url.Values,
) (domain.Actor, error) {
	ctx, cancel := context.WithTimeout(ctx, callbackLimit)
	defer cancel()
	over := clock.Now().Sub(time.UnixMilli(a.BeganMS)) > AttemptTime
	if !over {
		first, err := p.spend(ctx, a.State)
		if err != nil {
			return domain.Actor{}, err
		}
		over = !first
	}
	if over {
		return domain.Actor{}, domain.Errorf(domain.Invalid, "This login has already been completed, or took too long.")
	}
	switch {
	case callback.Get("error") != "":
		return domain.Actor{}, p.refused(callback)
	case callback.Get("code") == "":
		return domain.Actor{}, domain.Errorf(domain.Invalid, "%s has not confirmed this login.", p.host)
	}
	ctx, leave := p.enter(ctx)
	defer leave()
	claims, err := p.redeem(p.withHTTP(ctx), a, redirectURI, callback.Get("code"))
	if err != nil {
		return domain.Actor{}, err
	}
	actor := claims.actor(p.config)
	if actor.Role == "" {
		return domain.Actor{}, domain.Errorf(domain.Forbidden, "You are logged in at %s as %s, but may not use this "+
			"gateway: %s. Ask its administrator to let you in.", p.host, claims.account(), claims.refusal(p.config))
	}
	return actor, nil
}

// enter counts a callback until leave is called. If there are too many, the oldest ends.
func (p *Provider) enter(ctx context.Context) (_ context.Context, leave func()) {
	ctx, cancel := context.WithCancel(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.callbacks.Len() >= maxCallbacks {
		p.callbacks.Remove(p.callbacks.Front()).(context.CancelFunc)()
	}
	mine := p.callbacks.PushBack(cancel)
	return ctx, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.callbacks.Remove(mine)
		cancel()
	}
}

// redeem redeems a code and returns the verified claims. A token that does not fit what the provider once published,
// such as its signing algorithm, is looked at again after a fresh discovery.
func (p *Provider) redeem(ctx context.Context, a Attempt, redirectURI, code string) (claims, error) {
	e, err := p.endpoints(ctx)
	if err != nil {
		return nil, err
	}
	token, err := e.client(redirectURI).Exchange(ctx, code, oauth2.VerifierOption(a.Verifier))
	if err != nil {
		return nil, p.failure(err)
	}
	c, err := e.claims(ctx, a, token)
	if _, ok := errors.AsType[signatureError](err); ok {
		if e, err = p.fresh(ctx, e); err != nil {
			return nil, err
		}
		c, err = e.claims(ctx, a, token)
	}
	if err != nil {
		return nil, p.failure(err)
	}
	return c, nil
}
