package handlers_test

import (
	"encoding/json"
	"html"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
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

// signInSite is a gateway on real sockets with its own sign-in provider.
type signInSite struct {
	url      string
	port     string
	provider *signintest.Provider // nil: sign-in is not set up
	path     string               // the credentials file
	log      *logBuffer
}

type logBuffer = waittest.Log

func newSignInSite(t testing.TB, provider *signintest.Provider) *signInSite {
	t.Helper()
	return newGuardedSignInSite(t, provider, "")
}

func newGuardedSignInSite(t testing.TB, provider *signintest.Provider, adminToken domain.Secret) *signInSite {
	t.Helper()
	s := &signInSite{provider: provider, path: filepath.Join(t.TempDir(), "credentials.json"), log: &logBuffer{}}
	log := slog.New(slog.NewTextHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	o := service.Options{Log: log, Credentials: signin.NewFile(s.path)}
	if provider != nil {
		o.Provider = signin.New(signin.Config{
			AuthorizeURL: provider.AuthorizeURL, TokenURL: provider.TokenURL,
			ClientID: signintest.ClientID, Product: signintest.Product,
		}, log)
	}
	server := gatewaytest.New(t, o, handlers.Gateway{AdminToken: adminToken}).Serve(t)
	s.url = server.URL
	_, s.port, _ = net.SplitHostPort(server.Listener.Addr().String())
	return s
}

// answer is a response with its body read. Redirects are not followed.
type answer struct {
	*http.Response
	body string
}

func (s *signInSite) do(t testing.TB, method, path string, body io.Reader, headers ...string) answer {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, s.url+path, body)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{response, string(text)}
}

func (s *signInSite) get(t testing.TB, path string, headers ...string) answer {
	t.Helper()
	return s.do(t, http.MethodGet, path, nil, headers...)
}

func (s *signInSite) submit(t testing.TB, path string, fields ...string) answer {
	t.Helper()
	form := url.Values{}
	for i := 0; i < len(fields); i += 2 {
		form.Set(fields[i], fields[i+1])
	}
	return s.do(t, http.MethodPost, path, strings.NewReader(form.Encode()), "Content-Type", "application/x-www-form-urlencoded")
}

// approved starts a sign-in, approves it at the provider, and returns the query of the callback.
func (s *signInSite) approved(t testing.TB) string {
	t.Helper()
	a := s.get(t, "/oauth/authorize")
	if a.StatusCode != http.StatusTemporaryRedirect {
		t.Fatalf("/oauth/authorize = %d: %s", a.StatusCode, a.body)
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
	a := s.get(t, "/oauth/status")
	var status struct {
		Authenticated   bool   `json:"authenticated"`
		Expired         bool   `json:"expired"`
		ExpiresAt       uint64 `json:"expires_at"`
		HasRefreshToken bool   `json:"has_refresh_token"`
	}
	if err := json.Unmarshal([]byte(a.body), &status); err != nil || a.StatusCode != http.StatusOK {
		t.Fatalf("/oauth/status = %d %s", a.StatusCode, a.body)
	}
	return domain.SignInStatus(status)
}

var heading = regexp.MustCompile(`(?s)<h1[^>]*>(.*?)</h1>`)

// wantResult checks a page on which a sign-in ends.
func wantResult(t testing.TB, a answer, status int, title string) {
	t.Helper()
	headings := heading.FindAllStringSubmatch(a.body, -1)
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
