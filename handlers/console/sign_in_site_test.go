package console_test

import (
	"encoding/json"
	"html"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"switchyard/handlers"
	"switchyard/internal/domain"
	"switchyard/internal/gatewaytest"
	"switchyard/internal/service"
	"switchyard/internal/signin"
	"switchyard/internal/signintest"
	"switchyard/internal/waittest"
)

// signInSite is a gateway with a sign-in provider, and its log.
type signInSite struct {
	*gatewaytest.Site
	port     string
	provider *signintest.Provider // nil: sign-in is not set up
	path     string               // the credentials file
	log      *waittest.Log
}

func newSignInSite(t testing.TB, provider *signintest.Provider) *signInSite {
	t.Helper()
	return newGuardedSignInSite(t, provider, "")
}

func newGuardedSignInSite(t testing.TB, provider *signintest.Provider, adminToken domain.Secret) *signInSite {
	t.Helper()
	s := &signInSite{provider: provider, path: filepath.Join(t.TempDir(), "credentials.json"), log: &waittest.Log{}}
	log := slog.New(slog.NewTextHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	o := service.Options{Log: log, Credentials: signin.NewFile(s.path)}
	if provider != nil {
		o.Provider = gatewaytest.SignIn(provider, log)
	} else { // as internal/config does
		keys := []string{"sign_in.authorize_url", "sign_in.token_url", "sign_in.client_id", "sign_in.product"}
		o.SignInSetup = service.SignInSetup{Missing: keys}
	}
	s.Site = gatewaytest.NewSite(t, o, handlers.Gateway{AdminToken: adminToken})
	_, s.port, _ = net.SplitHostPort(s.Server.Listener.Addr().String())
	return s
}

// approved starts a sign-in, approves it at the provider, and returns the query of the callback.
func (s *signInSite) approved(t testing.TB) string {
	t.Helper()
	a := s.Get("/oauth/authorize")
	if a.StatusCode != http.StatusTemporaryRedirect {
		t.Fatalf("/oauth/authorize = %d: %s", a.StatusCode, a.Text)
	}
	callback := s.provider.Approve(t, a.Header.Get("Location"))
	query, ok := strings.CutPrefix(callback, "http://localhost:"+s.port+"/callback")
	if !ok {
		t.Fatalf("the provider sends the browser to %s", callback)
	}
	return query
}

func (s *signInSite) status(t testing.TB) domain.SignInStatus {
	t.Helper()
	a := s.Get("/oauth/status")
	var status struct {
		Authenticated   bool   `json:"authenticated"`
		Expired         bool   `json:"expired"`
		ExpiresAt       uint64 `json:"expires_at"`
		HasRefreshToken bool   `json:"has_refresh_token"`
	}
	if err := json.Unmarshal([]byte(a.Text), &status); err != nil || a.StatusCode != http.StatusOK {
		t.Fatalf("/oauth/status = %d %s", a.StatusCode, a.Text)
	}
	return domain.SignInStatus(status)
}

var heading = regexp.MustCompile(`(?s)<h1[^>]*>(.*?)</h1>`)

// wantResult checks a page on which a sign-in ends.
func wantResult(t testing.TB, a gatewaytest.Answer, status int, title string) {
	t.Helper()
	headings := heading.FindAllStringSubmatch(a.Text, -1)
	if a.StatusCode != status || len(headings) != 1 || html.UnescapeString(headings[0][1]) != title {
		t.Errorf("answer = %d with headings %q, want %d with %q alone", a.StatusCode, headings, status, title)
	}
	for name, want := range map[string]string{
		"Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff",
	} {
		if got := a.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
