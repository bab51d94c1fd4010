package handlers_test

import (
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/internal/gatewaytest"
)

func TestTwentyWrongTokensAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuarded(t, gatewaytest.AdminToken, "key")
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
			want("a right token in between", bearer(here, gatewaytest.AdminToken), 200)
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
		want("a right token", bearer(here, gatewaytest.AdminToken), 200)
		want("a right form", g.logIn(here, gatewaytest.AdminToken, ""), 303)
		want("a wrong form", g.logIn(here, "wrong", ""), 429)
		want("a right token for an agent that does not exist", g.send(here, "DELETE", "/gateway/agents/x", "", "Authorization", "Bearer "+gatewaytest.AdminToken), 404)
		want("a wrong one there", g.send(here, "DELETE", "/gateway/agents/x", "", "Authorization", "Bearer wrong"), 429)
		want("a session", g.send(here, "GET", "/api/gateway", "", "Cookie", session), 200)
		want("a request without a token", g.send(here, "GET", "/api/gateway", ""), 401)
		want("a page without a token", g.send(here, "GET", "/agents", ""), 303)
		want("what is open to everyone", g.send(here, "GET", "/healthz", ""), 200)
		want("the login page", g.send(here, "GET", "/login", ""), 200)
		want("another address", bearer("192.0.2.2:1", gatewaytest.AdminToken), 200)
		want("another address, wrong", bearer("192.0.2.2:1", "wrong"), 401)

		time.Sleep(41*time.Second - time.Millisecond)
		want("just before the minute is over", bearer(here, "wrong"), 429)
		time.Sleep(time.Millisecond)
		want("a wrong one when the minute is over", bearer(here, "wrong"), 401)
	})
}

func TestWrongTokensCountBySubnetOfIPv6(t *testing.T) {
	g := newGuarded(t, gatewaytest.AdminToken, "key")
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

// TestTrustedProxiesSayWhereWrongTokensComeFrom: nobody else is believed.
func TestTrustedProxiesSayWhereWrongTokensComeFrom(t *testing.T) {
	const proxy, far = "10.0.0.1:7", "192.0.2.9:7"
	for _, c := range []struct {
		name            string
		peer, forwarded string // of the callers that use up the limit
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
		g := newGuarded(t, gatewaytest.AdminToken, "key", "10.0.0.0/8")
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
	g := newGuarded(t, gatewaytest.AdminToken, "key")
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
