package handlers_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/handlers"
	"switchyard/internal/domain"
	"switchyard/internal/gatewaytest"
	"switchyard/internal/service"
	"switchyard/internal/store"
)

const adminToken = "correct-horse"

// guarded is a gateway with an admin token, "" for none, and what it logged.
type guarded struct {
	http.Handler
	log *logBuffer
	db  *store.DB
}

func newGuarded(t *testing.T, token domain.Secret, key string, trustedProxies ...string) guarded {
	t.Helper()
	buffer := &logBuffer{}
	o := service.Options{Log: slog.New(slog.NewTextHandler(buffer, nil))}
	h := handlers.Gateway{AdminToken: token, SessionKey: []byte(key)}
	for _, network := range trustedProxies {
		h.TrustedProxies = append(h.TrustedProxies, netip.MustParsePrefix(network))
	}
	g := gatewaytest.New(t, o, h)
	if _, err := g.Projects.Add(t.Context(), "hidden-project", "http://127.0.0.1:1", nil); err != nil {
		t.Fatal(err)
	}
	return guarded{g.HTTP.Handler(), buffer, g.Store}
}

// again is another gateway on the same database.
func (g guarded) again(t *testing.T, token domain.Secret, key string) guarded {
	other := gatewaytest.New(t, service.Options{Store: g.db}, handlers.Gateway{AdminToken: token, SessionKey: []byte(key)})
	return guarded{other.HTTP.Handler(), g.log, g.db}
}

// send sends a request from an address; headers are name, value, name, value, …
func (g guarded) send(from, method, target, body string, headers ...string) *http.Response {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.Host = "localhost"
	r.RemoteAddr = from
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
	answer := g.logIn(here, adminToken, "", headers...)
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
	g := newGuarded(t, adminToken, "key")
	for _, c := range []struct {
		method, path string
		without      int    // the status without anything
		location     string // of it
		with         int    // the status with the token or the session, 0 where that is not looked at
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
		for _, auth := range [][]string{{"Authorization", "Bearer " + adminToken}, {"Authorization", "bearer  " + adminToken}, {"Cookie", g.session(t)}} {
			if got := g.send(here, c.method, c.path, "", auth...).StatusCode; got != c.with {
				t.Errorf("%s %s with %s: %d, want %d", c.method, c.path, auth[0], got, c.with)
			}
		}
	}
}

func TestTheGuardsComeBeforeTheAdminToken(t *testing.T) {
	g := newGuarded(t, adminToken, "key")
	if got := g.send(here, "POST", "/api/gateway/switch", "", "Sec-Fetch-Site", "cross-site").StatusCode; got != 403 {
		t.Errorf("from another site: %d, want 403", got)
	}
	if got := g.send(here, "POST", "/login", "token="+adminToken, "Sec-Fetch-Site", "cross-site", "Content-Type", "application/x-www-form-urlencoded").StatusCode; got != 403 {
		t.Errorf("login from another site: %d, want 403", got)
	}
}

// TestOtherSitesReadNothing: a page of another site may lead here, but not load what is here. Side channels would tell it.
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

func TestLogin(t *testing.T) {
	g := newGuarded(t, adminToken, "key")
	for _, c := range []struct{ next, location string }{
		{"", "/"},
		{"/agents", "/agents"},
		{"/events?project=a%2Fb&type=x", "/events?project=a%2Fb&type=x"},
		{"/login", "/"},
		{"/login?next=/agents", "/"},
		{"https://evil.test/", "/"},
		{"//evil.test/", "/"},
		{"/\\evil.test/", "/"},
		{"\\\\evil.test/", "/"},
		{"/\t/evil.test/", "/"},
		{"javascript:alert(1)", "/"},
		{"agents", "/"},
		{"/\r\nSet-Cookie: a=b", "/"},
	} {
		answer := g.logIn(here, adminToken, c.next)
		if answer.StatusCode != 303 || answer.Header.Get("Location") != c.location {
			t.Errorf("next %q: %d to %q, want 303 to %q", c.next, answer.StatusCode, answer.Header.Get("Location"), c.location)
		}
	}

	answer := g.logIn(here, "wrong", "/agents")
	text := bodyOf(answer)
	if answer.StatusCode != 401 || len(answer.Cookies()) > 0 || !strings.Contains(text, "not the admin token") || !strings.Contains(text, `value="/agents"`) {
		t.Errorf("a wrong token: %d, cookies %v, %s", answer.StatusCode, answer.Cookies(), text)
	}
	if strings.Contains(g.log.String(), "wrong\"") || strings.Contains(g.log.String(), adminToken) {
		t.Errorf("the log holds a token: %s", g.log)
	}
	if answer := g.send(here, "GET", "/login?next=%2Fagents", "", "Cookie", g.session(t)); answer.StatusCode != 303 || answer.Header.Get("Location") != "/agents" {
		t.Errorf("the login with a session: %d to %q", answer.StatusCode, answer.Header.Get("Location"))
	}
}

func TestTheSessionCookie(t *testing.T) {
	g := newGuarded(t, adminToken, "key")
	plain := g.logIn(here, adminToken, "").Cookies()[0]
	if !plain.HttpOnly || plain.SameSite != http.SameSiteLaxMode || plain.Path != "/" || plain.Domain != "" || plain.Secure || plain.MaxAge <= 0 || !regexp.MustCompile(`^switchyard_[0-9a-f]{12}$`).MatchString(plain.Name) {
		t.Errorf("cookie %+v", plain)
	}
	secure := g.logIn(here, adminToken, "", "X-Forwarded-Proto", "https").Cookies()[0]
	if !secure.Secure || secure.Name != "__Host-"+plain.Name || secure.Path != "/" || secure.Domain != "" || !secure.HttpOnly {
		t.Errorf("cookie by https %+v", secure)
	}
	if strings.Contains(plain.Value, adminToken) {
		t.Error("the cookie holds the token")
	}

	enters := func(g guarded, cookie string) bool {
		return g.send(here, "GET", "/api/gateway", "", "Cookie", cookie).StatusCode == 200
	}
	otherKey := g.again(t, adminToken, "other key")
	good := plain.Name + "=" + plain.Value
	flipped := []byte(good)
	flipped[len(flipped)-10] ^= 1
	for name, c := range map[string]struct {
		at     guarded
		cookie string
		want   bool
	}{
		"as given":                 {g, good, true},
		"by https":                 {g, secure.Name + "=" + secure.Value, true},
		"among others of its name": {g, plain.Name + "=x; " + good, true},
		"changed":                  {g, string(flipped), false},
		"empty":                    {g, plain.Name + "=", false},
		"under another name":       {g, "switchyard_notice=" + plain.Value, false},
		"after a restart":          {g.again(t, adminToken, "key"), good, true},
		"with another key":         {otherKey, good, false},
		"forged with that key":     {otherKey, otherKey.session(t), true},
		"at another gateway":       {newGuarded(t, adminToken, "key"), good, false},
		"after the token's change": {g.again(t, "another token", "key"), good, false},
	} {
		if got := enters(c.at, c.cookie); got != c.want {
			t.Errorf("%s: enters is %v, want %v", name, got, c.want)
		}
	}
	if other := newGuarded(t, adminToken, "other key").logIn(here, adminToken, "").Cookies()[0].Name; other == plain.Name {
		t.Error("two gateways on one host have the same cookie")
	}
}

// TestARestartEndsNoSessionAndRevivesNone: what was logged out stays so.
func TestARestartEndsNoSessionAndRevivesNone(t *testing.T) {
	g := newGuarded(t, adminToken, "key")
	ended, kept := g.session(t), g.session(t)
	if got := g.send(here, "POST", "/logout", "", "Cookie", ended).StatusCode; got != 303 {
		t.Fatalf("logout: %d", got)
	}
	g = g.again(t, adminToken, "key")
	for cookie, want := range map[string]int{ended: 401, kept: 200} {
		if got := g.send(here, "GET", "/api/gateway", "", "Cookie", cookie).StatusCode; got != want {
			t.Errorf("after a restart: %d, want %d", got, want)
		}
	}
}

func TestASessionEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuarded(t, adminToken, "key")
		session := g.session(t)
		answer := g.send(here, "POST", "/logout", "", "Cookie", session)
		if answer.StatusCode != 303 || answer.Header.Get("Location") != "/login" || len(answer.Cookies()) != 2 {
			t.Errorf("logout: %d to %q with cookies %v", answer.StatusCode, answer.Header.Get("Location"), answer.Cookies())
		}
		for _, cookie := range answer.Cookies() {
			if cookie.MaxAge >= 0 || cookie.Value != "" {
				t.Errorf("logout leaves %v", cookie)
			}
		}
		if got := g.send(here, "GET", "/api/gateway", "", "Cookie", session).StatusCode; got != 401 {
			t.Errorf("the cookie after logging out: %d, want 401", got)
		}
		session = g.session(t)
		time.Sleep(6 * 24 * time.Hour)
		if got := g.send(here, "GET", "/api/gateway", "", "Cookie", session).StatusCode; got != 200 {
			t.Errorf("after six days: %d, want 200", got)
		}
		time.Sleep(2 * 24 * time.Hour)
		if got := g.send(here, "GET", "/api/gateway", "", "Cookie", session).StatusCode; got != 401 {
			t.Errorf("after eight days: %d, want 401", got)
		}
	})
}

func TestBrowsersWithoutASessionAreLedToTheLogin(t *testing.T) {
	g := newGuarded(t, adminToken, "key")
	part := g.send(here, "GET", "/agents", "", "HX-Request", "true")
	if part.StatusCode != 401 || part.Header.Get("HX-Refresh") != "true" {
		t.Errorf("a part: %d, HX-Refresh %q; the page around it must load anew", part.StatusCode, part.Header.Get("HX-Refresh"))
	}
	form := g.send(here, "POST", "/theme", "theme=dark", "Accept", "text/html,*/*", "Content-Type", "application/x-www-form-urlencoded")
	if text := bodyOf(form); form.StatusCode != 401 || !strings.Contains(text, "Admin token") {
		t.Errorf("a form: %d %s", form.StatusCode, text)
	}
	api := g.send(here, "GET", "/api/gateway", "")
	if api.Header.Get("WWW-Authenticate") != "Bearer" || !strings.HasPrefix(api.Header.Get("Content-Type"), "text/plain") {
		t.Errorf("the API: %v", api.Header)
	}
}

func TestTwentyWrongTokensAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuarded(t, adminToken, "key")
		session := g.session(t)
		bearer := func(from, token string) *http.Response {
			return g.send(from, "GET", "/api/gateway", "", "Authorization", "Bearer "+token)
		}
		want := func(what string, answer *http.Response, status int) {
			t.Helper()
			if answer.StatusCode != status {
				t.Errorf("%s: %d, want %d", what, answer.StatusCode, status)
			}
		}
		for i := range 20 {
			time.Sleep(time.Second)
			want("a right token in between", bearer(here, adminToken), 200)
			if i%2 == 0 {
				want("a wrong bearer token", bearer(here, "wrong"), 401)
			} else {
				want("a wrong form", g.logIn("127.0.0.1:99", "wrong", ""), 401)
			}
		}
		// The window began with the first wrong token, 19 s ago.
		limited := bearer(here, "wrong")
		want("the next wrong token", limited, 429)
		if got := limited.Header.Get("Retry-After"); got != "41" {
			t.Errorf("Retry-After is %q, want 41", got)
		}
		want("a right token", bearer(here, adminToken), 200)
		want("a right form", g.logIn(here, adminToken, ""), 303)
		want("a wrong form", g.logIn(here, "wrong", ""), 429)
		want("a right token for an agent that does not exist", g.send(here, "DELETE", "/gateway/agents/x", "", "Authorization", "Bearer "+adminToken), 404)
		want("a wrong one there", g.send(here, "DELETE", "/gateway/agents/x", "", "Authorization", "Bearer wrong"), 429)
		want("a session", g.send(here, "GET", "/api/gateway", "", "Cookie", session), 200)
		want("a request without a token", g.send(here, "GET", "/api/gateway", ""), 401)
		want("a page without a token", g.send(here, "GET", "/agents", ""), 303)
		want("what is open to everyone", g.send(here, "GET", "/healthz", ""), 200)
		want("the login page", g.send(here, "GET", "/login", ""), 200)
		want("another address", bearer("192.0.2.2:1", adminToken), 200)
		want("another address, wrong", bearer("192.0.2.2:1", "wrong"), 401)

		time.Sleep(41*time.Second - time.Millisecond)
		want("just before the minute is over", bearer(here, "wrong"), 429)
		time.Sleep(time.Millisecond)
		want("a wrong one when the minute is over", bearer(here, "wrong"), 401)
	})
}

func TestWrongTokensCountBySubnetOfIPv6(t *testing.T) {
	g := newGuarded(t, adminToken, "key")
	try := func(from string) int {
		return g.send(from, "GET", "/api/gateway", "", "Authorization", "Bearer wrong").StatusCode
	}
	for i := range 20 {
		try("[2001:db8:0:1::" + strconv.FormatInt(int64(i+1), 16) + "]:1")
	}
	for from, want := range map[string]int{
		"[2001:db8:0:1:ffff::1]:1": 429,
		"[2001:db8:0:2::1]:1":      401,
		"192.0.2.1:1":              401,
	} {
		if got := try(from); got != want {
			t.Errorf("%s: %d, want %d", from, got, want)
		}
	}
	for range 20 {
		try("[::ffff:192.0.2.7]:1")
	}
	if got := try("192.0.2.7:2"); got != 429 {
		t.Errorf("an IPv4 address in IPv6 form is another one: %d, want 429", got)
	}
}

// TestTrustedProxiesSayWhereWrongTokensComeFrom: of all others nothing is believed.
func TestTrustedProxiesSayWhereWrongTokensComeFrom(t *testing.T) {
	const proxy, far = "10.0.0.1:7", "192.0.2.9:7"
	for _, c := range []struct {
		name            string
		peer, forwarded string // of those who use up the limit
		same            [2]string
		other           [2]string
	}{
		{"a proxy forwards", proxy, "192.0.2.1", [2]string{proxy, "192.0.2.1"}, [2]string{proxy, "192.0.2.2"}},
		{"what callers say themselves", proxy, "203.0.113.5, 192.0.2.1", [2]string{proxy, "203.0.113.6, 192.0.2.1"}, [2]string{proxy, "192.0.2.1, 192.0.2.2"}},
		{"two proxies", proxy, "192.0.2.1, 10.0.0.2", [2]string{proxy, "192.0.2.1"}, [2]string{proxy, "192.0.2.2, 10.0.0.2"}},
		{"with ports", proxy, "192.0.2.1:99", [2]string{proxy, "192.0.2.1:98"}, [2]string{proxy, "[2001:db8::1]:99"}},
		{"IPv6", proxy, "2001:db8::1", [2]string{proxy, "2001:db8::2"}, [2]string{proxy, "2001:db8:0:1::1"}},
		{"a proxy says nonsense", proxy, "unknown", [2]string{proxy, ""}, [2]string{proxy, "192.0.2.2"}},
		{"a stranger forwards", far, "192.0.2.1", [2]string{far, "192.0.2.2"}, [2]string{proxy, "192.0.2.1"}},
		{"this machine", "127.0.0.1:1", "", [2]string{"127.9.9.9:1", ""}, [2]string{"[::1]:1", ""}},
	} {
		g := newGuarded(t, adminToken, "key", "10.0.0.0/8")
		try := func(from [2]string) int {
			return g.send(from[0], "GET", "/api/gateway", "", "Authorization", "Bearer wrong", "X-Forwarded-For", from[1]).StatusCode
		}
		for range 20 {
			try([2]string{c.peer, c.forwarded})
		}
		if same, other := try(c.same), try(c.other); same != 429 || other != 401 {
			t.Errorf("%s: %d and %d, want 429 and 401", c.name, same, other)
		}
	}
}

func TestWrongTokensAtOnceAreCountedExactly(t *testing.T) {
	g := newGuarded(t, adminToken, "key")
	var wrong, limited atomic.Int32
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			switch g.send(here, "GET", "/api/gateway", "", "Authorization", "Bearer wrong").StatusCode {
			case 401:
				wrong.Add(1)
			case 429:
				limited.Add(1)
			}
		})
	}
	all.Wait()
	if wrong.Load() != 20 || limited.Load() != 80 {
		t.Errorf("%d wrong and %d limited, want 20 and 80", wrong.Load(), limited.Load())
	}
}

// TestRequestsOfAConnectionAreStrangers: what one has shown holds for that one only.
func TestRequestsOfAConnectionAreStrangers(t *testing.T) {
	g := newGuardedAgentGateway(t, "the token")
	conn, from := g.dial()
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
		response, body := g.answer(from)
		if response.StatusCode != c.status {
			t.Errorf("%s with %q: %d %s, want %d", c.path, c.token, response.StatusCode, body, c.status)
		}
		ids[response.Header.Get("X-Request-Id")] = true
	}
	if len(ids) != 6 {
		t.Errorf("six requests have the ids %v", ids)
	}
}
