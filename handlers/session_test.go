package handlers_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/internal/gatewaytest"
)

func TestLogin(t *testing.T) {
	g := newGuarded(t, gatewaytest.AdminToken, "key")
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
		answer := g.logIn(here, gatewaytest.AdminToken, c.next)
		if answer.StatusCode != 303 || answer.Header.Get("Location") != c.location {
			t.Errorf("next %q: %d to %q, want 303 to %q", c.next, answer.StatusCode, answer.Header.Get("Location"), c.location)
		}
	}

	if answer := g.logIn(here, " \t"+gatewaytest.AdminToken+"\n", ""); answer.StatusCode != 303 {
		t.Errorf("a token with blanks around it: %d", answer.StatusCode)
	}
	answer := g.logIn(here, "wrong", "/agents")
	text := bodyOf(answer)
	if answer.StatusCode != 401 || len(answer.Cookies()) > 0 || !strings.Contains(text, "neither the admin token") || !strings.Contains(text, `value="/agents"`) {
		t.Errorf("a wrong token: %d, cookies %v, %s", answer.StatusCode, answer.Cookies(), text)
	}
	if strings.Contains(g.log.String(), "wrong\"") || strings.Contains(g.log.String(), gatewaytest.AdminToken) {
		t.Errorf("the log holds a token: %s", g.log)
	}
	if answer := g.send(here, "GET", "/login?next=%2Fagents", "", "Cookie", g.session(t)); answer.StatusCode != 303 || answer.Header.Get("Location") != "/agents" {
		t.Errorf("the login with a session: %d to %q", answer.StatusCode, answer.Header.Get("Location"))
	}
}

func TestTheSessionCookie(t *testing.T) {
	g := newGuarded(t, gatewaytest.AdminToken, "key")
	plain := g.logIn(here, gatewaytest.AdminToken, "").Cookies()[0]
	if !plain.HttpOnly || plain.SameSite != http.SameSiteLaxMode || plain.Path != "/" || plain.Domain != "" || plain.Secure || plain.MaxAge <= 0 || !regexp.MustCompile(`^switchyard_[0-9a-f]{12}$`).MatchString(plain.Name) {
		t.Errorf("cookie %+v", plain)
	}
	secure := g.logIn(here, gatewaytest.AdminToken, "", "X-Forwarded-Proto", "https").Cookies()[0]
	if !secure.Secure || secure.Name != "__Host-"+plain.Name || secure.Path != "/" || secure.Domain != "" || !secure.HttpOnly {
		t.Errorf("cookie by https %+v", secure)
	}
	if strings.Contains(plain.Value, gatewaytest.AdminToken) {
		t.Error("the cookie holds the token")
	}

	enters := func(g guarded, cookie string) bool {
		return g.send(here, "GET", "/api/gateway", "", "Cookie", cookie).StatusCode == 200
	}
	otherKey := g.again(t, gatewaytest.AdminToken, "other key")
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
		"after a restart":          {g.again(t, gatewaytest.AdminToken, "key"), good, true},
		"with another key":         {otherKey, good, false},
		"forged with that key":     {otherKey, otherKey.session(t), true},
		"at another gateway":       {newGuarded(t, gatewaytest.AdminToken, "key"), good, false},
		"after the token's change": {g.again(t, "another token", "key"), good, false},
	} {
		if got := enters(c.at, c.cookie); got != c.want {
			t.Errorf("%s: enters is %v, want %v", name, got, c.want)
		}
	}
	if other := newGuarded(t, gatewaytest.AdminToken, "other key").logIn(here, gatewaytest.AdminToken, "").Cookies()[0].Name; other == plain.Name {
		t.Error("two gateways on one host have the same cookie")
	}
}

// TestARestartEndsNoSessionAndRevivesNone: sessions that were logged out stay ended.
func TestARestartEndsNoSessionAndRevivesNone(t *testing.T) {
	g := newGuarded(t, gatewaytest.AdminToken, "key")
	ended, kept := g.session(t), g.session(t)
	if got := g.send(here, "POST", "/logout", "", "Cookie", ended).StatusCode; got != 303 {
		t.Fatalf("logout: %d", got)
	}
	g = g.again(t, gatewaytest.AdminToken, "key")
	for cookie, want := range map[string]int{ended: 401, kept: 200} {
		if got := g.send(here, "GET", "/api/gateway", "", "Cookie", cookie).StatusCode; got != want {
			t.Errorf("after a restart: %d, want %d", got, want)
		}
	}
}

func TestASessionEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuarded(t, gatewaytest.AdminToken, "key")
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
		time.Sleep(11 * time.Hour)
		if got := g.send(here, "GET", "/api/gateway", "", "Cookie", session).StatusCode; got != 200 {
			t.Errorf("after eleven hours: %d, want 200", got)
		}
		time.Sleep(time.Hour)
		if got := g.send(here, "GET", "/api/gateway", "", "Cookie", session).StatusCode; got != 401 {
			t.Errorf("after twelve hours: %d, want 401", got)
		}
	})
}

func TestBrowsersWithoutASessionAreRedirectedToTheLogin(t *testing.T) {
	g := newGuarded(t, gatewaytest.AdminToken, "key")
	part := g.send(here, "GET", "/agents", "", "HX-Request", "true")
	if part.StatusCode != 401 || part.Header.Get("HX-Refresh") != "true" {
		t.Errorf("a part: %d, HX-Refresh %q; the page around it must be loaded again", part.StatusCode, part.Header.Get("HX-Refresh"))
	}
	form := g.send(here, "POST", "/theme", "theme=dark", "Accept", "text/html,*/*", "Content-Type", "application/x-www-form-urlencoded")
	if text := bodyOf(form); form.StatusCode != 401 || !strings.Contains(text, ">Token<") {
		t.Errorf("a form: %d %s", form.StatusCode, text)
	}
	api := g.send(here, "GET", "/api/gateway", "")
	if api.Header.Get("WWW-Authenticate") != "Bearer" || !strings.HasPrefix(api.Header.Get("Content-Type"), "text/plain") {
		t.Errorf("the API: %v", api.Header)
	}
}
