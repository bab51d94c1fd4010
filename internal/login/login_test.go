package login_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"switchyard/internal/config"
	"switchyard/internal/domain"
	"switchyard/internal/login"
	"switchyard/internal/logintest"
	"switchyard/internal/waittest"
)

const redirectURI = "http://yard.example/login/callback"

func newLogin(t *testing.T) (*logintest.Provider, *login.Provider) {
	provider := logintest.New(t)
	return provider, login.New(config.Login{
		Issuer: provider.Issuer, ClientID: logintest.ClientID, ClientSecret: logintest.ClientSecret, RolesClaim: "groups",
		Roles: domain.RoleLists{Viewers: []string{"staff"}, Operators: []string{"jo@example.com"}, Admins: []string{"platform"}},
	}, logintest.Spend())
}

// begin visits the provider as a browser does, and returns the parameters of the callback.
func begin(t *testing.T, p *login.Provider) (login.Attempt, url.Values) {
	t.Helper()
	address, attempt, err := p.Begin(t.Context(), redirectURI)
	if err != nil {
		t.Fatal(err)
	}
	browser := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := browser.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	back, err := answer.Location()
	if err != nil || back.Query().Get("state") != attempt.State {
		t.Fatalf("the provider answers %d and sends to %v, %v", answer.StatusCode, back, err)
	}
	return attempt, back.Query()
}

func logIn(t *testing.T, p *login.Provider) (domain.Actor, error) {
	t.Helper()
	attempt, callback := begin(t, p)
	return p.Finish(t.Context(), attempt, redirectURI, callback)
}

// checkSecrets fails the test if an error contains a secret.
func checkSecrets(t *testing.T, provider *logintest.Provider, err error) {
	t.Helper()
	for _, secret := range provider.Secrets() {
		if secret != "" && strings.Contains(fmt.Sprintf("%v %+v", err, err), secret) {
			t.Errorf("the error holds %q: %v", secret, err)
		}
	}
}

func TestTheRoleIsThatOfTheGroupsOrTheVerifiedAddress(t *testing.T) {
	provider, p := newLogin(t)
	for _, c := range []struct {
		claims map[string]any
		want   domain.Actor
	}{
		{map[string]any{"email": "jo@example.com", "email_verified": true}, domain.Actor{Who: "jo@example.com", Role: domain.RoleOperator}},
		{map[string]any{"email": "Jo@Example.com", "email_verified": "true"}, domain.Actor{Who: "Jo@Example.com", Role: domain.RoleOperator}},
		{map[string]any{"email": "jo@example.com", "email_verified": true, "groups": []string{"platform"}}, domain.Actor{Who: "jo@example.com", Role: domain.RoleAdmin}},
		{map[string]any{"groups": "staff", "preferred_username": "admin"}, domain.Actor{Who: "admin (4711)", Role: domain.RoleViewer}},
		{map[string]any{"groups": []any{1, nil, "staff"}, "email": "boss@example.com"}, domain.Actor{Who: "4711", Role: domain.RoleViewer}},
	} {
		c.claims["sub"] = "4711"
		provider.User(c.claims)
		c.want.Via, c.want.Account = domain.ViaLogin, "login "+provider.Issuer+" 4711"
		if got, err := logIn(t, p); err != nil || got != c.want {
			t.Errorf("%v: %+v, %v; want %+v", c.claims, got, err, c.want)
		}
	}
}

func TestWhoHasNoRoleIsRefused(t *testing.T) {
	provider, p := newLogin(t)
	const unverified, noGroups, noRole = "not verified", `no groups of yours (claim "groups")`, "any of your groups"
	for what, c := range map[string]struct {
		claims      map[string]any
		as, because string
	}{
		"an address that is not verified":   {map[string]any{"email": "jo@example.com", "email_verified": false}, "jo@example.com", unverified},
		"one of which nothing is said":      {map[string]any{"email": "jo@example.com", "preferred_username": "jo"}, "jo@example.com", unverified},
		"one that is verified as something": {map[string]any{"email": "jo@example.com", "email_verified": 1, "groups": []string{}}, "jo@example.com", unverified},
		"a lost group":                      {map[string]any{"groups": []string{}, "preferred_username": "jo"}, "jo", noGroups},
		"another group":                     {map[string]any{"groups": []string{"Staff", "guests"}, "name": "Jo"}, "Jo", noRole + " (Staff, guests)"},
		"groups of a strange form":          {map[string]any{"groups": map[string]any{"staff": true}}, "4711", noGroups},
		"a group that is called like a listed address": {
			map[string]any{"groups": []string{"jo@example.com"}, "email": "eve@example.com", "email_verified": true}, "eve@example.com", noRole,
		},
	} {
		c.claims["sub"] = "4711"
		provider.User(c.claims)
		_, err := logIn(t, p)
		text := domain.MessageOf(err)
		if domain.CodeOf(err) != domain.Forbidden || !strings.Contains(text, " as "+c.as+", but may not use this gateway: ") || !strings.Contains(text, c.because) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestGroupsThatOnlyTheUserInfoHasCount(t *testing.T) {
	provider, p := newLogin(t)
	provider.User(map[string]any{"sub": "4711"})
	provider.UserInfo(map[string]any{"groups": []string{"platform"}, "email": "kit@example.com", "email_verified": true})
	if got, err := logIn(t, p); err != nil || got != (domain.Actor{Who: "kit@example.com", Via: domain.ViaLogin, Role: domain.RoleAdmin, Account: "login " + provider.Issuer + " 4711"}) {
		t.Errorf("%+v, %v", got, err)
	}
	provider.UserInfo(map[string]any{"sub": "4712", "groups": []string{"platform"}})
	if _, err := logIn(t, p); domain.CodeOf(err) != domain.BadGateway {
		t.Errorf("the user info of somebody else: %v", err)
	}
}

func TestATokenThatIsNotForThisLoginIsRefused(t *testing.T) {
	for what, change := range map[string]func(map[string]any){
		"nonce":        func(c map[string]any) { c["nonce"] = "another" },
		"no nonce":     func(c map[string]any) { delete(c, "nonce") },
		"audience":     func(c map[string]any) { c["aud"] = "another" },
		"party":        func(c map[string]any) { c["azp"] = "another" },
		"parties":      func(c map[string]any) { c["aud"] = []string{logintest.ClientID, "another"} },
		"future":       func(c map[string]any) { c["iat"] = time.Now().Add(time.Hour).Unix() },
		"issuer":       func(c map[string]any) { c["iss"] = "https://another.example" },
		"expired":      func(c map[string]any) { c["exp"] = time.Now().Add(-time.Minute).Unix() },
		"no expiry":    func(c map[string]any) { delete(c, "exp") },
		"not yet":      func(c map[string]any) { c["nbf"] = time.Now().Add(time.Hour).Unix() },
		"no subject":   func(c map[string]any) { delete(c, "sub") },
		"access token": func(c map[string]any) { c["at_hash"] = "AAAAAAAAAAAAAAAAAAAAAA" },
	} {
		provider, p := newLogin(t)
		provider.Change(change)
		_, err := logIn(t, p)
		if domain.CodeOf(err) != domain.BadGateway || !strings.Contains(domain.MessageOf(err), "sent a token that cannot be trusted") {
			t.Errorf("%s: %v", what, err)
		}
		checkSecrets(t, provider, err)
		provider.Change(nil)
		if _, err := logIn(t, p); err != nil {
			t.Errorf("after %s: %v", what, err)
		}
	}
}

func TestKeysMayBeRotatedButNotForged(t *testing.T) {
	provider, p := newLogin(t)
	for range 3 {
		if _, err := logIn(t, p); err != nil {
			t.Fatal(err)
		}
		provider.Rotate()
	}
	provider.Forge()
	if _, err := logIn(t, p); domain.CodeOf(err) != domain.BadGateway {
		t.Errorf("a forged signature: %v", err)
	}
	if n := provider.Requests("/.well-known/openid-configuration"); n != 2 { // the second before the forged one is refused
		t.Errorf("%d discoveries", n)
	}
}

// TestAProviderMayChangeWhatItDiscovers: its algorithms and the address of its keys, at any time.
func TestAProviderMayChangeWhatItDiscovers(t *testing.T) {
	for what, old := range map[string]map[string]any{
		"the algorithms":          {"id_token_signing_alg_values_supported": []string{"RS256"}},
		"the address of the keys": {"jwks_uri": "/old-keys"},
	} {
		provider, p := newLogin(t)
		provider.Answer("/.well-known/openid-configuration", provider.Discovery(old))
		provider.Answer("/old-keys", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"keys":[]}`) })
		attempt, callback := begin(t, p)
		provider.Answer("/.well-known/openid-configuration", nil)
		if _, err := p.Finish(t.Context(), attempt, redirectURI, callback); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if _, err := logIn(t, p); err != nil {
			t.Errorf("%s, afterwards: %v", what, err)
		}
		if n := provider.Requests("/.well-known/openid-configuration"); n != 2 {
			t.Errorf("%s: %d discoveries", what, n)
		}
	}
}

// TestSlowCallbacksHoldUpNobody: the provider does not answer forty callbacks.
func TestSlowCallbacksHoldUpNobody(t *testing.T) {
	provider, p := newLogin(t)
	p.SetCallLimit(time.Minute)
	attempt, callback := begin(t, p)
	ctx, end := context.WithCancel(t.Context())
	var slow sync.WaitGroup
	provider.Answer("/token", func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	})
	for range 40 {
		attempt, callback := begin(t, p)
		slow.Go(func() {
			if _, err := p.Finish(ctx, attempt, redirectURI, callback); domain.CodeOf(err) != domain.BadGateway {
				t.Errorf("a slow one: %v", err)
			}
		})
	}
	waittest.Until(t, "all are under way", func() bool { return provider.Requests("/token") >= 40 })
	provider.Answer("/token", nil)
	if _, err := p.Finish(t.Context(), attempt, redirectURI, callback); err != nil {
		t.Error(err)
	}
	end()
	slow.Wait()
}

func TestACallbackWorksOnce(t *testing.T) {
	provider, p := newLogin(t)
	attempt, callback := begin(t, p)
	if _, err := p.Finish(t.Context(), attempt, redirectURI, callback); err != nil {
		t.Fatal(err)
	}
	before := provider.Requests("/token")
	if _, err := p.Finish(t.Context(), attempt, redirectURI, callback); domain.CodeOf(err) != domain.Invalid || provider.Requests("/token") != before {
		t.Errorf("again: %v, %d requests for tokens", err, provider.Requests("/token")-before)
	}
	late, callback := begin(t, p)
	late.BeganMS -= (login.AttemptTime + time.Second).Milliseconds()
	if _, err := p.Finish(t.Context(), late, redirectURI, callback); domain.CodeOf(err) != domain.Invalid {
		t.Errorf("too late: %v", err)
	}
}

func TestWhatTheProviderRefusesIsSaid(t *testing.T) {
	provider, p := newLogin(t)
	attempt, _ := begin(t, p)
	_, err := p.Finish(t.Context(), attempt, redirectURI, url.Values{"error": {"access_denied"}, "error_description": {strings.Repeat("no ", 1000)}})
	if text := domain.MessageOf(err); domain.CodeOf(err) != domain.Invalid || !strings.Contains(text, "access_denied, no no") || len(text) > 400 {
		t.Errorf("%v", err)
	}
	attempt, callback := begin(t, p)
	callback.Set("code", "guessed")
	if _, err = p.Finish(t.Context(), attempt, redirectURI, callback); domain.CodeOf(err) != domain.BadGateway || !strings.Contains(domain.MessageOf(err), "does not accept this login") {
		t.Errorf("a wrong code: %v", err)
	}
	checkSecrets(t, provider, err)
	attempt, callback = begin(t, p)
	attempt.Verifier = strings.Repeat("x", 43)
	if _, err = p.Finish(t.Context(), attempt, redirectURI, callback); domain.CodeOf(err) != domain.BadGateway {
		t.Errorf("a wrong verifier: %v", err)
	}
	checkSecrets(t, provider, err)
	attempt, callback = begin(t, p)
	callback.Del("code")
	if _, err = p.Finish(t.Context(), attempt, redirectURI, callback); domain.CodeOf(err) != domain.Invalid {
		t.Errorf("no code: %v", err)
	}
}

func TestAProviderThatFailsIsSaidInWords(t *testing.T) {
	hang := func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then does the server notice that the client is gone
		<-r.Context().Done()
	}
	garbage := func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }
	endless := func(w http.ResponseWriter, _ *http.Request) {
		for chunk := []byte(strings.Repeat(" ", 1<<16)); ; {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	}
	elsewhere := func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/keys", http.StatusTemporaryRedirect)
	}
	fails := func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, r.PostFormValue("code"), http.StatusInternalServerError)
	}
	empty := func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "{}") }
	script := func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"issuer":"http://%s","authorization_endpoint":"javascript:alert(1)","token_endpoint":"http://%[1]s/token","jwks_uri":"http://%[1]s/keys"}`, r.Host)
	}
	for what, answer := range map[string]http.HandlerFunc{
		"hang": hang, "garbage": garbage, "endless": endless, "elsewhere": elsewhere, "fails": fails, "empty": empty, "script": script,
	} {
		for _, path := range []string{"/.well-known/openid-configuration", "/token", "/keys", "/userinfo"} {
			t.Run(what+path, func(t *testing.T) {
				provider, p := newLogin(t)
				soon := func() {
					if what == "hang" {
						p.SetCallLimit(100 * time.Millisecond)
					}
				}
				var err error
				if path == "/.well-known/openid-configuration" {
					provider.Answer(path, answer)
					soon()
					_, _, err = p.Begin(t.Context(), redirectURI)
				} else {
					attempt, callback := begin(t, p)
					provider.Answer(path, answer)
					soon()
					_, err = p.Finish(t.Context(), attempt, redirectURI, callback)
				}
				if text := domain.MessageOf(err); domain.CodeOf(err) != domain.BadGateway || !strings.Contains(text, "Try again in a minute") || len(text) > 300 {
					t.Errorf("%v", err)
				}
				checkSecrets(t, provider, err)
				provider.Answer(path, nil)
				p.SetCallLimit(time.Minute)
				if _, err := logIn(t, p); err != nil {
					t.Errorf("once it is well again: %v", err)
				}
			})
		}
	}
}

func TestAProviderThatIsAwayMayComeLater(t *testing.T) {
	p := login.New(config.Login{Issuer: "http://127.0.0.1:1", ClientID: "a"}, nil)
	_, _, err := p.Begin(t.Context(), redirectURI)
	if domain.MessageOf(err) != "127.0.0.1:1 does not answer (connection refused). Try again in a minute, or log in with a token." {
		t.Errorf("%v", err)
	}
}
