package handlers_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"switchyard/handlers"
	"switchyard/internal/domain"
	"switchyard/internal/gatewaytest"
	"switchyard/internal/service"
	"switchyard/internal/store/sqlite"
	"switchyard/internal/waittest"
)

// guarded is a gateway with an admin token, "" for none, and its log.
type guarded struct {
	http.Handler
	log     *waittest.Log
	db      *sqlite.DB
	service *service.Service
}

func newGuarded(t *testing.T, token domain.Secret, key string, trustedProxies ...string) guarded {
	t.Helper()
	buffer := &waittest.Log{}
	o := service.Options{Log: slog.New(slog.NewTextHandler(buffer, nil))}
	h := handlers.Gateway{AdminToken: token, SessionKey: []byte(key)}
	for _, network := range trustedProxies {
		h.Proxies.TrustedProxies = append(h.Proxies.TrustedProxies, netip.MustParsePrefix(network))
	}
	g := gatewaytest.New(t, o, h)
	if _, err := g.Projects.Add(t.Context(), "hidden-project", "http://127.0.0.1:1", nil); err != nil {
		t.Fatal(err)
	}
	return guarded{g.HTTP.Handler(), buffer, g.Store, g.Service}
}

// again returns another gateway on the same database.
func (g guarded) again(t *testing.T, token domain.Secret, key string) guarded {
	o := service.Options{Store: g.db, Changes: &gatewaytest.Changes{}}
	other := gatewaytest.New(t, o, handlers.Gateway{AdminToken: token, SessionKey: []byte(key)})
	return guarded{other.HTTP.Handler(), g.log, g.db, other.Service}
}

// send sends a request from an address; headers are name, value, name, value, …
func (g guarded) send(from, method, target, body string, headers ...string) *http.Response {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	if r.RemoteAddr = from; !strings.HasPrefix(target, "http") {
		r.Host = "localhost"
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	g.ServeHTTP(w, r)
	return w.Result()
}

const here = "127.0.0.1:4711"

func (g guarded) logIn(from, token, next string, headers ...string) *http.Response {
	form := url.Values{"token": {token}, "next": {next}}
	return g.send(from, "POST", "/login", form.Encode(), append(headers, "Content-Type", "application/x-www-form-urlencoded")...)
}

// session returns the Cookie header of a new session.
func (g guarded) session(t *testing.T, headers ...string) string {
	t.Helper()
	answer := g.logIn(here, gatewaytest.AdminToken, "", headers...)
	if answer.StatusCode != http.StatusSeeOther || len(answer.Cookies()) != 1 {
		t.Fatalf("login: status %d, cookies %v", answer.StatusCode, answer.Cookies())
	}
	cookie := answer.Cookies()[0]
	return cookie.Name + "=" + cookie.Value
}

func bodyOf(r *http.Response) string {
	var b strings.Builder
	_ = r.Write(&b)
	return b.String()
}

func TestWhoIsAskedForTheAdminToken(t *testing.T) {
	g := newGuarded(t, gatewaytest.AdminToken, "key")
	for _, c := range []struct {
		method, path string
		without      int    // the status without anything
		location     string // of it
		with         int    // the status with the token or the session, 0 if it is not checked
	}{
		{"GET", "/oauth/authorize", 303, "/login?next=%2Foauth%2Fauthorize", 0},
		{"GET", "/projects/a%2Fb?x=1", 303, "/login?next=%2Fprojects%2Fa%252Fb%3Fx%3D1", 0},
		{"GET", "/", 303, "/login", 0},
		{"HEAD", "/agents", 303, "/login?next=%2Fagents", 0},
		{"GET", "/events", 303, "/login?next=%2Fevents", 0},
		{"GET", "/bot-config", 303, "/login?next=%2Fbot-config", 0},
		{"POST", "/theme", 401, "", 400},
		{"POST", "/sign-out", 401, "", 0},
		{"POST", "/logout", 401, "", 303},
		{"GET", "/logout", 401, "", 405},
		{"GET", "/api/gateway", 401, "", 200},
		{"GET", "/gateway/mode", 401, "", 200},
		{"GET", "/gateway/agents", 401, "", 0},
		{"POST", "/gateway/agents/x/assign", 401, "", 0},
		{"GET", "/oauth/status", 401, "", 200},
		{"POST", "/oauth/authorize", 401, "", 405},
		{"POST", "/api/gateway/switch", 401, "", 400},
		{"DELETE", "/api/gateway", 401, "", 405},
		{"GET", "/api/nothing", 401, "", 404},
		{"GET", "/nothing", 401, "", 0},
		{"GET", "/api/../login", 401, "", 0},
		{"GET", "/%6cogin", 401, "", 0},
		{"GET", "/login/", 401, "", 0},
		{"GET", "/login", 200, "", 0},
		{"GET", "/healthz", 200, "", 200},
		{"POST", "/healthz", 405, "", 405},
		{"GET", "/readyz", 200, "", 200},
		{"GET", "/static/nothing", 404, "", 404},
		{"GET", "/callback", 400, "", 400},
		{"GET", "/oauth/callback", 400, "", 400},
	} {
		answer := g.send(here, c.method, c.path, "")
		if answer.StatusCode != c.without || answer.Header.Get("Location") != c.location {
			t.Errorf("%s %s: %d to %q, want %d to %q", c.method, c.path, answer.StatusCode, answer.Header.Get("Location"), c.without, c.location)
		}
		if strings.Contains(bodyOf(answer), "hidden-project") {
			t.Errorf("%s %s shows a project to everyone", c.method, c.path)
		}
		if c.with == 0 {
			continue
		}
		for _, auth := range [][]string{{"Authorization", "Bearer " + gatewaytest.AdminToken}, {"Authorization", "bearer  " + gatewaytest.AdminToken}, {"Cookie", g.session(t)}} {
			if got := g.send(here, c.method, c.path, "", auth...).StatusCode; got != c.with {
				t.Errorf("%s %s with %s: %d, want %d", c.method, c.path, auth[0], got, c.with)
			}
		}
	}
}

// TestTheOrderOfChecks: host, origin, authentication, route, media type, size, content. The request is corrected step by step.
func TestTheOrderOfChecks(t *testing.T) {
	g := newGuarded(t, gatewaytest.AdminToken, "key")
	large := `{"project":"` + strings.Repeat("x", 1<<20) + `"}`
	auth := []string{"Authorization", "Bearer " + gatewaytest.AdminToken}
	foreign := append([]string{"Sec-Fetch-Site", "cross-site"}, auth...)
	const path = "/api/gateway/switch"
	for _, c := range []struct {
		method, target, body string
		headers              []string
		status               int
		says                 string
	}{
		{"DELETE", "http://evil.test" + path, large, foreign[:2], 403, "host name"},
		{"DELETE", path, large, foreign[:2], 403, "cross-origin"},
		{"DELETE", path, large, nil, 401, "token"},
		{"POST", "/api/gateway/none", large, nil, 401, "token"},
		{"POST", path, large, nil, 401, `{"ok":false,"error":`},
		{"DELETE", path, large, auth, 405, "not allowed"},
		{"POST", "/api/gateway/none", large, auth, 404, "not found"},
		{"POST", path, large, append([]string{"Content-Type", "text/plain"}, auth...), 415, `{"ok":false,"error":`},
		{"POST", path, large, append([]string{"Content-Type", "application/json"}, auth...), 413, `{"ok":false,"error":`},
		{"POST", path, `{"project":7}`, append([]string{"Content-Type", "application/json"}, auth...), 400, `{"ok":false,"error":`},
	} {
		answer := g.send(here, c.method, c.target, c.body, c.headers...)
		if text := bodyOf(answer); answer.StatusCode != c.status || !strings.Contains(text, c.says) {
			t.Errorf("%s %s with %v: %d %s, want %d, %s", c.method, c.target, c.headers, answer.StatusCode, text, c.status, c.says)
		}
	}
}

func TestTheGuardsComeBeforeTheAdminToken(t *testing.T) {
	g := newGuarded(t, gatewaytest.AdminToken, "key")
	if got := g.send(here, "POST", "/api/gateway/switch", "", "Sec-Fetch-Site", "cross-site").StatusCode; got != 403 {
		t.Errorf("from another site: %d, want 403", got)
	}
	if got := g.send(here, "POST", "/login", "token="+gatewaytest.AdminToken, "Sec-Fetch-Site", "cross-site", "Content-Type", "application/x-www-form-urlencoded").StatusCode; got != 403 {
		t.Errorf("login from another site: %d, want 403", got)
	}
}

// TestOtherSitesReadNothing: a page of another site may link here, but not load anything, which would leak by side channels.
func TestOtherSitesReadNothing(t *testing.T) {
	g := newGuarded(t, "", "key")
	for _, c := range []struct {
		site, mode string
		status     int
	}{
		{"cross-site", "no-cors", 403},
		{"cross-site", "cors", 403},
		{"cross-site", "", 403},
		{"cross-site", "navigate", 200},
		{"same-site", "no-cors", 200},
		{"same-origin", "cors", 200},
		{"none", "navigate", 200},
	} {
		for _, path := range []string{"/", "/api/gateway", "/healthz", "/metrics"} {
			answer := g.send(here, "GET", path, "", "Sec-Fetch-Site", c.site, "Sec-Fetch-Mode", c.mode)
			if answer.StatusCode != c.status {
				t.Errorf("%s from %s by %s: %d, want %d", path, c.site, c.mode, answer.StatusCode, c.status)
			}
			if got := answer.Header.Get("Cross-Origin-Resource-Policy"); got != "same-origin" {
				t.Errorf("%s from %s: Cross-Origin-Resource-Policy is %q", path, c.site, got)
			}
		}
	}
}

func TestWithoutAnAdminTokenEveryoneIsTheAdministrator(t *testing.T) {
	g := newGuarded(t, "", "key")
	for _, c := range []struct{ method, path, location string }{
		{"GET", "/login", "/"},
		{"GET", "/login?next=/agents", "/"},
		{"POST", "/login", "/"},
	} {
		if answer := g.send(here, c.method, c.path, ""); answer.StatusCode != 303 || answer.Header.Get("Location") != c.location || len(answer.Cookies()) > 0 {
			t.Errorf("%s %s: %d to %q with cookies %v", c.method, c.path, answer.StatusCode, answer.Header.Get("Location"), answer.Cookies())
		}
	}
	if got := g.send(here, "GET", "/api/gateway", "", "Authorization", "Bearer whatever").StatusCode; got != 200 {
		t.Errorf("a needless token: %d, want 200", got)
	}
}

// TestEachRequestOfAConnectionAuthenticatesItself: each has to authenticate itself.
func TestEachRequestOfAConnectionAuthenticatesItself(t *testing.T) {
	g := gatewaytest.NewSite(t, service.Options{}, handlers.Gateway{AdminToken: "the token"})
	conn, from := g.Dial()
	ids := map[string]bool{}
	for _, c := range []struct {
		path, token string
		status      int
	}{
		{"/api/gateway", "the token", 200},
		{"/api/gateway", "", 401},
		{"/gateway/agents", "the token", 200},
		{"/gateway/agents", "wrong", 401},
		{"/healthz", "", 200},
		{"/agents/none/label", "", 401},
	} {
		fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n", c.path, c.token)
		response := g.ReadAnswer(from)
		if response.StatusCode != c.status {
			t.Errorf("%s with %q: %d %s, want %d", c.path, c.token, response.StatusCode, response.Text, c.status)
		}
		ids[response.Header.Get("X-Request-Id")] = true
	}
	if len(ids) != 6 {
		t.Errorf("six requests have the ids %v", ids)
	}
}
