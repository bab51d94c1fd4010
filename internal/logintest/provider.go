// Package logintest is an OpenID Connect provider for tests. It is as strict as a good real one: it checks every
// parameter, including PKCE and the client's secret, and accepts each code once. It logs everybody in without a
// password.
package logintest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc/oidctest"
)

// The registration of the only client, and the issued tokens. They are canaries, which must not appear in logs or
// pages.
const (
	ClientID     = "yard-4711"
	ClientSecret = "canary-client-secret"
	AccessToken  = "canary-login-access-token"
)

// Provider is an OpenID Connect provider on a loopback port.
type Provider struct {
	Issuer string

	mu       sync.Mutex
	key      *ecdsa.PrivateKey
	keyID    string
	user     map[string]any // claims of the user who logs in
	info     map[string]any // further claims, only in the user info
	change   func(claims map[string]any)
	forged   bool
	grants   map[string]url.Values // the authorization requests, by code
	secrets  []string
	answers  map[string]http.HandlerFunc // by path
	requests map[string]int
}

// New starts a provider that ends with the test. The user is jo@example.com, in no group.
func New(t testing.TB) *Provider {
	t.Helper()
	p := &Provider{grants: map[string]url.Values{}, answers: map[string]http.HandlerFunc{}, requests: map[string]int{}}
	p.User(map[string]any{"sub": "4711", "email": "jo@example.com", "email_verified": true})
	p.Rotate()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", p.discovery)
	mux.HandleFunc("GET /authorize", p.authorize)
	mux.HandleFunc("POST /token", p.token)
	mux.HandleFunc("GET /keys", p.keys)
	mux.HandleFunc("GET /userinfo", p.userInfo)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		p.requests[r.URL.Path]++
		answer := p.answers[r.URL.Path]
		p.mu.Unlock()
		if answer == nil {
			answer = mux.ServeHTTP
		}
		answer(w, r)
	}))
	t.Cleanup(server.Close)
	p.Issuer = server.URL
	return p
}

// Spend returns what knows the states of logins for one provider of package login.
func Spend() func(ctx context.Context, state string) (first bool, err error) {
	var known sync.Map
	return func(_ context.Context, state string) (bool, error) {
		_, again := known.LoadOrStore(state, true)
		return !again, nil
	}
}

// User sets the claims of the user who logs in from now on.
func (p *Provider) User(claims map[string]any) { p.locked(func() { p.user = claims }) }

// UserInfo sets claims that are only in the user info.
func (p *Provider) UserInfo(claims map[string]any) { p.locked(func() { p.info = claims }) }

// Change sets a function that changes ID tokens before they are signed.
func (p *Provider) Change(change func(claims map[string]any)) { p.locked(func() { p.change = change }) }

// Forge makes the provider sign with a key that it does not publish.
func (p *Provider) Forge() { p.locked(func() { p.forged = true }) }

// Rotate replaces the key.
func (p *Provider) Rotate() {
	p.locked(func() { p.key, p.keyID = newKey(), rand.Text() })
}

// Answer makes h handle a path from now on; nil restores the real handler.
func (p *Provider) Answer(path string, h http.HandlerFunc) { p.locked(func() { p.answers[path] = h }) }

// Requests returns the number of requests for a path.
func (p *Provider) Requests(path string) (n int) {
	p.locked(func() { n = p.requests[path] })
	return n
}

// Secrets returns the secrets that the gateway and the provider have exchanged.
func (p *Provider) Secrets() (all []string) {
	p.locked(func() { all = append([]string{ClientSecret, AccessToken}, p.secrets...) })
	return all
}

func (p *Provider) locked(do func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	do()
}

func newKey() *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	return key
}

func (p *Provider) discovery(w http.ResponseWriter, r *http.Request) { p.Discovery(nil)(w, r) }

// Discovery returns a handler of the discovery document with other members; addresses without a host are the
// provider's.
func (p *Provider) Discovery(others map[string]any) http.HandlerFunc {
	document := map[string]any{
		"issuer": p.Issuer, "authorization_endpoint": p.Issuer + "/authorize", "token_endpoint": p.Issuer + "/token",
		"jwks_uri": p.Issuer + "/keys", "userinfo_endpoint": p.Issuer + "/userinfo",
		"scopes_supported":                      []string{"openid", "profile", "email", "groups"},
		"id_token_signing_alg_values_supported": []string{"ES256"},
	}
	for name, value := range others {
		if path, ok := value.(string); ok && strings.HasPrefix(path, "/") {
			value = p.Issuer + path
		}
		document[name] = value
	}
	return func(w http.ResponseWriter, _ *http.Request) { answer(w, document) }
}

// authorize logs the user in without asking.
func (p *Provider) authorize(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	back, err := url.Parse(query.Get("redirect_uri"))
	if err != nil || back.Path != "/login/callback" || query.Get("client_id") != ClientID ||
		query.Get("response_type") != "code" || query.Get("scope") != "openid profile email groups" ||
		query.Get("nonce") == "" || len(query.Get("state")) < 20 || query.Get("code_challenge_method") != "S256" {
		http.Error(w, "not an authorization request: "+r.URL.RawQuery, http.StatusBadRequest)
		return
	}
	code := "canary-code-" + rand.Text()
	p.locked(func() { p.grants[code], p.secrets = query, append(p.secrets, code) })
	back.RawQuery = url.Values{"code": {code}, "state": {query.Get("state")}}.Encode()
	http.Redirect(w, r, back.String(), http.StatusSeeOther)
}

func (p *Provider) token(w http.ResponseWriter, r *http.Request) {
	id, secret, _ := r.BasicAuth()
	verifier := r.PostFormValue("code_verifier")
	challenge := sha256.Sum256([]byte(verifier))
	var grant url.Values
	p.locked(func() {
		grant = p.grants[r.PostFormValue("code")]
		delete(p.grants, r.PostFormValue("code"))
		p.secrets = append(p.secrets, verifier)
	})
	switch {
	case id != ClientID || secret != ClientSecret:
		http.Error(w, `{"error":"invalid_client"}`, http.StatusUnauthorized)
	case grant == nil || r.PostFormValue("grant_type") != "authorization_code" ||
		r.PostFormValue("redirect_uri") != grant.Get("redirect_uri") ||
		grant.Get("code_challenge") != base64.RawURLEncoding.EncodeToString(challenge[:]):
		http.Error(w, `{"error":"invalid_grant","error_description":"`+r.PostFormValue("code")+" "+verifier+`"}`,
			http.StatusBadRequest)
	default:
		idToken := p.idToken(grant.Get("nonce"))
		p.locked(func() { p.secrets = append(p.secrets, idToken) })
		answer(w, map[string]any{"access_token": AccessToken, "token_type": "Bearer", "expires_in": 60, "id_token": idToken})
	}
}

func (p *Provider) idToken(nonce string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	claims := map[string]any{
		"iss": p.Issuer, "aud": ClientID, "nonce": nonce,
		"iat": time.Now().Unix(), "exp": time.Now().Add(time.Minute).Unix(),
	}
	maps.Copy(claims, p.user)
	if p.change != nil {
		p.change(claims)
	}
	text, err := json.Marshal(claims)
	if err != nil {
		panic(err)
	}
	key := p.key
	if p.forged {
		key = newKey()
	}
	return oidctest.SignIDToken(key, p.keyID, "ES256", string(text))
}

func (p *Provider) keys(w http.ResponseWriter, _ *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	point, err := p.key.PublicKey.Bytes() // 4, x, y
	if err != nil {
		panic(err)
	}
	answer(w, map[string]any{"keys": []any{map[string]any{
		"kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": p.keyID,
		"x": base64.RawURLEncoding.EncodeToString(point[1:33]), "y": base64.RawURLEncoding.EncodeToString(point[33:]),
	}}})
}

func (p *Provider) userInfo(w http.ResponseWriter, r *http.Request) {
	if !strings.HasSuffix(r.Header.Get("Authorization"), " "+AccessToken) {
		http.Error(w, r.Header.Get("Authorization"), http.StatusUnauthorized)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	claims := maps.Clone(p.user)
	maps.Copy(claims, p.info)
	answer(w, claims)
}

func answer(w http.ResponseWriter, body any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(body)
}
