// Package login lets people log in to the console through an OpenID Connect provider: the code flow with PKCE, state and
// nonce. It has nothing to do with the sign-in, which gets the gateway itself tokens of an identity provider (package signin), and
// must never know pages, cookies or sessions.
package login

import (
	"context"
	"crypto/rand"
	"net/http"
	"net/url"
	"sync"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/sync/singleflight"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
)

const (
	// AttemptTime is how long a login may take, from its start to the callback.
	AttemptTime = 10 * time.Minute
	// callbackLimit bounds what a callback asks the provider: for the tokens, the keys and what it knows of the user.
	callbackLimit = 15 * time.Second
	// maxCallbacks is how many callbacks ask the provider at once: strangers may send them, too.
	maxCallbacks = 8
)

// Config describes the provider and who has which role.
type Config struct {
	Issuer       string
	ClientID     string
	ClientSecret domain.Secret // "" for a public client
	RolesClaim   string        // says which groups somebody is in
	Roles        domain.RoleLists
	Spent        Spent // nil for that of this process alone
}

// Provider is an OpenID Connect provider. It is safe for concurrent use.
type Provider struct {
	config    Config
	host      string // the issuer's, by which people know it
	http      *http.Client
	discovery singleflight.Group

	slots chan struct{} // holds a value for each callback that is being worked on
	mu    sync.Mutex
	known *endpoints // nil before the first discovery
	asked time.Time  // when it was discovered last
}

// Attempt is a login that was begun. Only the browser that began it may have it.
type Attempt struct {
	State    string `json:"s"`
	Nonce    string `json:"n"`
	Verifier string `json:"v"`
	BeganMS  int64  `json:"t"`
}

// New returns the provider that c describes. It is asked for the first time when somebody logs in.
func New(c Config) *Provider {
	if c.Spent == nil {
		c.Spent = &spent{}
	}
	p := &Provider{config: c, http: newHTTPClient(), slots: make(chan struct{}, maxCallbacks)}
	if issuer, err := url.Parse(c.Issuer); err == nil {
		p.host = issuer.Host
	}
	return p
}

// Host is how people know the provider.
func (p *Provider) Host() string { return p.host }

// Begin begins a login that comes back to redirectURI, and returns the address at which the browser goes on. It returns
// BadGateway, with a message for people, when the provider fails.
func (p *Provider) Begin(ctx context.Context, redirectURI string) (address string, a Attempt, err error) {
	e, err := p.endpoints(ctx)
	if err != nil {
		return "", Attempt{}, err
	}
	a = Attempt{State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier(), BeganMS: clock.Now().UnixMilli()}
	client := e.client(redirectURI)
	return client.AuthCodeURL(a.State, oauth2.S256ChallengeOption(a.Verifier), oauth2.SetAuthURLParam("nonce", a.Nonce)), a, nil
}

// Finish ends a login with the parameters of its callback, once, and returns who has logged in. It returns Invalid for a callback
// that is not the provider's yes to this attempt, BadGateway when the provider fails or what it says cannot be trusted, and
// Forbidden for somebody who has no role here.
func (p *Provider) Finish(ctx context.Context, a Attempt, redirectURI string, callback url.Values) (Person, error) {
	ctx, cancel := context.WithTimeout(ctx, callbackLimit)
	defer cancel()
	over := clock.Now().Sub(time.UnixMilli(a.BeganMS)) > AttemptTime
	if !over {
		first, err := p.config.Spent.SpendLogin(ctx, a.State)
		if err != nil {
			return Person{}, err
		}
		over = !first
	}
	if over {
		return Person{}, domain.Errorf(domain.Invalid, "This login was finished before, or has taken too long.")
	}
	switch {
	case callback.Get("error") != "":
		return Person{}, p.refused(callback)
	case callback.Get("code") == "":
		return Person{}, domain.Errorf(domain.Invalid, "This is not how %s ends a login.", p.host)
	}
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	case <-ctx.Done():
		return Person{}, p.failure(ctx.Err())
	}
	e, err := p.endpoints(ctx)
	if err != nil {
		return Person{}, err
	}
	token, err := e.exchange(p.withHTTP(ctx), a, redirectURI, callback.Get("code"))
	if err != nil {
		return Person{}, p.failure(err)
	}
	claims, err := e.claims(p.withHTTP(ctx), a, token)
	if err != nil {
		return Person{}, p.failure(err)
	}
	person := claims.person(p.config)
	if person.Role == "" {
		return Person{}, domain.Errorf(domain.Forbidden, "You are logged in at %s as %s, but may not use this gateway. Ask its administrator to let you in.", p.host, person.Name)
	}
	return person, nil
}
