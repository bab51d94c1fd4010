// Package signin implements the OAuth side of the sign-in: PKCE, pending flows, the exchange of a code for tokens, and
// the credentials file. It must know neither pages nor handlers.
package signin

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"switchyard/internal/domain"
)

// SetupPage is the gateway's page that lists missing settings. Browsers are sent there when AuthorizeURL is not set.
const SetupPage = "/sign-in/setup"

// TokenFormat is the encoding of the request to the token endpoint.
type TokenFormat string

const (
	JSON TokenFormat = "json" // an object
	Form TokenFormat = "form" // RFC 6749, section 4.1.3
)

// Config describes the identity provider and the gateway's registration there.
type Config struct {
	AuthorizeURL string // where browsers are sent, any query kept; "" for SetupPage
	TokenURL     string // where codes are exchanged; without it every sign-in fails
	ClientID     string
	Product      string      // part of the scope user:sessions:<product>_code
	TokenFormat  TokenFormat // "" for JSON
	Scopes       []string    // nil for the default five
	Flows        Flows       // nil keeps them in memory
}

func (c Config) scopes() []string {
	if c.Scopes != nil {
		return c.Scopes
	}
	sessions := "user:sessions:" + c.Product + "_code"
	return []string{"user:inference", "user:profile", "user:mcp_servers", sessions, "user:file_upload"}
}

// Client signs people in at one identity provider. It is safe for concurrent use.
type Client struct {
	config    Config
	flows     Flows
	transport http.RoundTripper
}

// New returns a client for the provider that c describes.
func New(c Config, log *slog.Logger) *Client {
	if c.Flows == nil {
		c.Flows = newFlows(log)
	}
	return &Client{config: c, flows: c.Flows, transport: newTransport()}
}

// Begin starts a flow and returns the address to which to send the browser.
func (c *Client) Begin(ctx context.Context, redirectURI string) (address string, err error) {
	f := domain.SignInFlow{Verifier: domain.Secret(randomText(verifierLength)), RedirectURI: redirectURI}
	state := randomText(stateLength)
	if err := c.flows.AddSignInFlow(ctx, state, f); err != nil {
		return "", err
	}
	return c.config.authorizeAddress(f, state), nil
}

// Redeem ends the flow with the given state and exchanges the code for tokens within 15 s. A state works once, even
// when the exchange fails. Every error is a *domain.SignInError.
func (c *Client) Redeem(ctx context.Context, code, state string) (domain.Credentials, error) {
	f, err := c.flows.TakeSignInFlow(ctx, state)
	if domain.CodeOf(err) == domain.NotFound {
		return domain.Credentials{}, &domain.SignInError{Outcome: domain.SignInUnknownState}
	}
	if err != nil {
		return domain.Credentials{}, &domain.SignInError{Outcome: domain.SignInNoDatabase, Detail: domain.MessageOf(err)}
	}
	answer, err := c.exchange(ctx, f, code, state)
	if err != nil {
		return domain.Credentials{}, err
	}
	return domain.Credentials{
		AccessToken:  domain.Secret(answer.accessToken),
		RefreshToken: domain.Secret(answer.refreshToken),
		ExpiresAt:    expiry(time.Now(), answer.expiresIn),
		Scopes:       c.config.scopes(),
	}, nil
}

// authorizeAddress appends the parameters to the configured address, in a fixed order.
func (c Config) authorizeAddress(f domain.SignInFlow, state string) string {
	base, _, _ := strings.Cut(cmp.Or(c.AuthorizeURL, SetupPage), "#") // a fragment would swallow the query
	var b strings.Builder
	b.WriteString(base)
	switch {
	case !strings.Contains(base, "?"):
		b.WriteByte('?')
	case !strings.HasSuffix(base, "?") && !strings.HasSuffix(base, "&"):
		b.WriteByte('&')
	}
	b.WriteString("code=true&client_id=" + escape(c.ClientID) + "&response_type=code")
	b.WriteString("&redirect_uri=" + escape(f.RedirectURI))
	b.WriteString("&scope=" + escape(strings.Join(c.scopes(), " ")))
	b.WriteString("&code_challenge=" + escape(challenge(f.Verifier.Reveal())) + "&code_challenge_method=S256")
	b.WriteString("&state=" + escape(state))
	return b.String()
}

// escape keeps A-Z a-z 0-9 - _ . ~ and writes every other byte as % and two upper-case hex digits.
// url.QueryEscape would write a space as +.
func escape(text string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(text) {
		switch c := text[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("-_.~", c) >= 0:
			b.WriteByte(c)
		default:
			b.Write([]byte{'%', hex[c>>4], hex[c&15]})
		}
	}
	return b.String()
}
