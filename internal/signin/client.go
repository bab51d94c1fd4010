// Package signin implements the OAuth side of the sign-in: PKCE, pending flows, the exchange of a code for tokens, and
// the credentials file. It must know neither pages nor handlers.
package signin

import (
	"cmp"
	"context"
	"crypto/rand"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"golang.org/x/oauth2"

	"switchyard/internal/config"
	"switchyard/internal/domain"
)

// SetupPage is the gateway's page that lists missing settings. Browsers are sent there when AuthorizeURL is not set.
const SetupPage = "/sign-in/setup"

func (c *Client) scopes() []string {
	if c.config.Scopes != nil {
		return c.config.Scopes
	}
	sessions := "user:sessions:" + c.config.Product + "_code"
	return []string{"user:inference", "user:profile", "user:mcp_servers", sessions, "user:file_upload"}
}

// Client signs people in at one identity provider. It is safe for concurrent use.
type Client struct {
	config    config.SignIn
	flows     Flows
	transport http.RoundTripper
}

// New returns the client for the identity provider that c describes. Pending flows are kept in memory if shared is nil.
func New(c config.SignIn, shared Flows, log *slog.Logger) *Client {
	if shared == nil {
		shared = &flows{log: log, waiting: map[string]domain.SignInFlow{}}
	}
	return &Client{config: c, flows: shared, transport: newTransport()}
}

// Begin starts a flow and returns the address to which to send the browser.
func (c *Client) Begin(ctx context.Context, redirectURI string) (address string, err error) {
	f := domain.SignInFlow{Verifier: domain.Secret(randomText(verifierLength)), RedirectURI: redirectURI}
	state := randomText(stateLength)
	if err := c.flows.AddSignInFlow(ctx, state, f); err != nil {
		return "", err
	}
	return c.authorizeAddress(f, state), nil
}

// Redeem ends the flow with the given state and exchanges the code for tokens within 15 s. A state works once, even
// when the exchange fails. Every error is a domain.SignInResult.
func (c *Client) Redeem(ctx context.Context, code, state string) (domain.Credentials, error) {
	f, err := c.flows.TakeSignInFlow(ctx, state)
	if domain.CodeOf(err) == domain.NotFound {
		return domain.Credentials{}, failed(domain.SignInUnknownState)
	}
	if err != nil {
		return domain.Credentials{}, failed(domain.SignInNoDatabase, domain.MessageOf(err))
	}
	return c.exchange(ctx, f, code, state)
}

// authorizeAddress appends the parameters to the configured address, in a fixed order.
func (c *Client) authorizeAddress(f domain.SignInFlow, state string) string {
	base, _, _ := strings.Cut(cmp.Or(c.config.AuthorizeURL, SetupPage), "#") // a fragment would swallow the query
	switch {
	case !strings.Contains(base, "?"):
		base += "?"
	case !strings.HasSuffix(base, "?") && !strings.HasSuffix(base, "&"):
		base += "&"
	}
	return base + "code=true&client_id=" + escape(c.config.ClientID) + "&response_type=code" +
		"&redirect_uri=" + escape(f.RedirectURI) + "&scope=" + escape(strings.Join(c.scopes(), " ")) +
		"&code_challenge=" + oauth2.S256ChallengeFromVerifier(f.Verifier.Reveal()) + "&code_challenge_method=S256" +
		"&state=" + escape(state)
}

// escape keeps A-Z a-z 0-9 - _ . ~ and writes every other byte as % and two upper-case hex digits, a space too.
func escape(text string) string { return strings.ReplaceAll(url.QueryEscape(text), "+", "%20") }

// Lengths in characters; RFC 7636 allows verifiers of 43 to 128.
const (
	verifierLength = 128
	stateLength    = 32
)

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

// randomText returns n characters of the alphabet, each equally likely.
func randomText(n int) string {
	text, random := make([]byte, 0, n), make([]byte, 2*n)
	for len(text) < n {
		_, _ = rand.Read(random) // never fails
		for _, b := range random {
			if b < 4*byte(len(alphabet)) && len(text) < n { // the rest would favour the first letters
				text = append(text, alphabet[b%byte(len(alphabet))])
			}
		}
	}
	return string(text)
}

// Flows keeps pending sign-ins by their state.
type Flows interface {
	AddSignInFlow(ctx context.Context, state string, f domain.SignInFlow) error
	// TakeSignInFlow removes and returns the flow with that state. Of several concurrent callers exactly one gets it; the
	// others get NotFound, as for an unknown state.
	TakeSignInFlow(ctx context.Context, state string) (domain.SignInFlow, error)
}

// manyFlows is the number of pending flows (about 20 MB) above which a warning is logged. Flows do not expire and new
// ones are not refused.
const manyFlows = 65_536

type flows struct {
	log *slog.Logger

	mu      sync.Mutex
	waiting map[string]domain.SignInFlow
	warned  bool
}

func (f *flows) AddSignInFlow(_ context.Context, state string, fl domain.SignInFlow) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.waiting[state] = fl
	if len(f.waiting) > manyFlows && !f.warned {
		f.warned = true
		f.log.Warn("many sign-ins are pending; a restart forgets them", "waiting", len(f.waiting))
	}
	return nil
}

func (f *flows) TakeSignInFlow(_ context.Context, state string) (domain.SignInFlow, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fl, ok := f.waiting[state]
	delete(f.waiting, state)
	if len(f.waiting) < manyFlows/2 { // well below, so that a number around the limit does not flood the log
		f.warned = false
	}
	if !ok {
		return domain.SignInFlow{}, domain.Errorf(domain.NotFound, "no sign-in has this state")
	}
	return fl, nil
}

// ParseCallback reads the parameters of a callback's query; the first of a repeated one counts. Badly escaped values
// are kept as they are: url.ParseQuery would drop the parameter and so miss a refusal.
func ParseCallback(query string) domain.SignInCallback {
	var c domain.SignInCallback
	parameters := map[string]**string{
		"code": &c.Code, "state": &c.State, "error": &c.Error, "error_description": &c.ErrorDescription,
	}
	for pair := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(pair, "=")
		if to := parameters[unescaped(name)]; to != nil && *to == nil {
			value = unescaped(value)
			*to = &value
		}
	}
	return c
}

func unescaped(text string) string {
	if plain, err := url.QueryUnescape(text); err == nil {
		return plain
	}
	return text
}

// ParsePastedCallback reads what a person copied by hand: the whole callback address, only its query, or "code#state"
// as some providers show it. It returns Invalid for anything else.
func ParsePastedCallback(text string) (domain.SignInCallback, error) {
	text = strings.TrimSpace(text)
	address, _, _ := strings.Cut(text, "#")
	_, query, isAddress := strings.Cut(address, "?")
	if !isAddress {
		query = address
	}
	if c := ParseCallback(query); c.Error != nil || c.Code != nil && c.State != nil {
		return c, nil
	}
	if code, state, found := strings.Cut(text, "#"); found && !isAddress && isToken(code) && isToken(state) {
		return domain.SignInCallback{Code: &code, State: &state}, nil
	}
	return domain.SignInCallback{}, domain.Errorf(domain.Invalid,
		"This is neither a callback address nor a code with its state. "+
			"Copy the whole address from the browser's address bar, or all of the code.")
}

// isToken reports whether text may be a code or a state, rather than an address or prose.
func isToken(text string) bool {
	return text != "" && !strings.Contains(text, "://") && !strings.ContainsAny(text, "# \t\r\n")
}
