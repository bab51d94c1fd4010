// Package signintest is an identity provider for tests. It is as strict as a good real one: it checks every
// parameter, including the code challenge, and accepts each code once.
package signintest

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// The registration of the only client, and the issued tokens. AccessToken and RefreshToken are canaries, which must
// not appear in logs or pages.
const (
	ClientID     = "client-4711"
	Product      = "example"
	Scope        = "user:inference user:profile user:mcp_servers user:sessions:example_code user:file_upload"
	AccessToken  = "canary-access-token"
	RefreshToken = "canary-refresh-token"
	ExpiresIn    = 3600 // seconds

	// StandardScope is the scope of a provider with the option Standard.
	StandardScope = "openid email offline_access"
)

// Option changes a provider's requirements.
type Option func(*Provider)

// Standard makes a provider strictly follow RFC 6749: it requires forms, has other scopes, and reports errors by code.
func Standard(p *Provider) { p.standard, p.scope = true, StandardScope }

// Provider is an identity provider on a loopback port. Its authorize page has the links Allow and Deny.
type Provider struct {
	AuthorizeURL string
	TokenURL     string

	standard bool
	scope    string

	mu        sync.Mutex
	grants    map[string]grant // by code
	answer    http.HandlerFunc // replaces the token endpoint unless nil
	exchanges int
	secrets   []string
}

type grant struct{ redirectURI, challenge, state string }

// New starts a provider that ends with the test.
func New(t testing.TB, options ...Option) *Provider {
	p := &Provider{grants: map[string]grant{}, scope: Scope}
	for _, option := range options {
		option(p)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /authorize", p.authorize)
	mux.HandleFunc("/token", p.token)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	p.AuthorizeURL, p.TokenURL = server.URL+"/authorize", server.URL+"/token"
	return p
}

// Answer makes h the token endpoint from now on; nil restores the real one.
func (p *Provider) Answer(h http.HandlerFunc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answer = h
}

// Exchanges returns the number of requests to the token endpoint.
func (p *Provider) Exchanges() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.exchanges
}

// Secrets returns the codes, verifiers and tokens sent so far.
func (p *Provider) Secrets() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string{AccessToken, RefreshToken}, p.secrets...)
}

// Approve allows the sign-in as a person who was sent to address would, and returns the callback address.
func (p *Provider) Approve(t testing.TB, address string) (callback string) {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	if callback, err = p.approve(u.RawQuery); err != nil {
		t.Fatalf("the provider refuses %s: %v", address, err)
	}
	return callback
}

var (
	redirects  = regexp.MustCompile(`^http://localhost:[0-9]+/callback$`)
	challenges = regexp.MustCompile(`^[A-Za-z0-9_-]{43}$`)
	states     = regexp.MustCompile(`^[A-Za-z0-9]{32}$`)
	verifiers  = regexp.MustCompile(`^[A-Za-z0-9]{128}$`)
)

func (p *Provider) approve(query string) (callback string, err error) {
	values, err := url.ParseQuery(query)
	if err != nil {
		return "", err
	}
	g := grant{values.Get("redirect_uri"), values.Get("code_challenge"), values.Get("state")}
	for name, ok := range map[string]bool{
		"code":                  values.Get("code") == "true",
		"client_id":             values.Get("client_id") == ClientID,
		"response_type":         values.Get("response_type") == "code",
		"redirect_uri":          redirects.MatchString(g.redirectURI),
		"scope":                 values.Get("scope") == p.scope,
		"code_challenge":        challenges.MatchString(g.challenge),
		"code_challenge_method": values.Get("code_challenge_method") == "S256",
		"state":                 states.MatchString(g.state),
	} {
		if !ok {
			return "", fmt.Errorf("bad %s: %q", name, values.Get(name))
		}
	}
	code := "canary-code-" + rand.Text()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.grants[code] = g
	p.secrets = append(p.secrets, code)
	return g.redirectURI + "?code=" + code + "&state=" + g.state, nil
}

func (p *Provider) authorize(w http.ResponseWriter, r *http.Request) {
	callback, err := p.approve(r.URL.RawQuery)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	address, _, _ := strings.Cut(callback, "?")
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	fmt.Fprintf(w, `<!doctype html><link rel="icon" href="data:,"><title>Provider</title><h1>Provider</h1>`+
		`<a id="allow" href="%s">Allow</a> <a id="deny" href="%s">Deny</a>`,
		html.EscapeString(callback), html.EscapeString(address+"?error=access_denied&error_description=The+person+said+no"))
}

func (p *Provider) token(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.exchanges++
	answer := p.answer
	p.mu.Unlock()
	if answer != nil {
		answer(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if err := p.redeem(r); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"error":"invalid_grant","error_description":%q}`, err)
		return
	}
	fmt.Fprintf(w, `{"access_token":%q,"refresh_token":%q,"expires_in":%d,"token_type":"Bearer","scope":%q}`,
		AccessToken, RefreshToken, ExpiresIn, p.scope)
}

// parameters returns the parameters of a request to the token endpoint, in the one format that p accepts.
func (p *Provider) parameters(r *http.Request) (map[string]string, error) {
	want := "application/json"
	if p.standard {
		want = "application/x-www-form-urlencoded"
	}
	if r.Method != http.MethodPost || r.Header.Get("Content-Type") != want {
		return nil, fmt.Errorf("%s of %s", r.Method, r.Header.Get("Content-Type"))
	}
	body := map[string]string{}
	if !p.standard {
		return body, json.NewDecoder(r.Body).Decode(&body)
	}
	err := r.ParseForm()
	for name := range r.PostForm {
		body[name] = r.PostForm.Get(name)
	}
	return body, err
}

func (p *Provider) redeem(r *http.Request) error {
	body, err := p.parameters(r)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.secrets = append(p.secrets, body["code_verifier"])
	g, ok := p.grants[body["code"]]
	delete(p.grants, body["code"])
	sum := sha256.Sum256([]byte(body["code_verifier"]))
	switch {
	case !ok:
		return fmt.Errorf("the code is unknown or used")
	case body["grant_type"] != "authorization_code" || body["client_id"] != ClientID:
		return fmt.Errorf("grant_type or client_id is wrong")
	case !p.standard && (len(body) != 6 || body["state"] != g.state) || p.standard && len(body) != 5:
		return fmt.Errorf("the body has other fields")
	case body["redirect_uri"] != g.redirectURI:
		return fmt.Errorf("redirect_uri is not the one of the authorization")
	case !verifiers.MatchString(body["code_verifier"]) || base64.RawURLEncoding.EncodeToString(sum[:]) != g.challenge:
		return fmt.Errorf("code_verifier does not fit code_challenge")
	}
	return nil
}
