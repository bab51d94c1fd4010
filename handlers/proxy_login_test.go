package handlers_test

import (
	"log/slog"
	"net/netip"
	"strings"
	"testing"

	"switchyard/handlers"
	"switchyard/internal/config"
	"switchyard/internal/domain"
	"switchyard/internal/gatewaytest"
	"switchyard/internal/service"
	"switchyard/internal/waittest"
)

const proxy, stranger = "10.0.0.1:4711", "203.0.113.9:4711"

func newProxied(t *testing.T, token domain.Secret) guarded {
	t.Helper()
	buffer := &waittest.Log{}
	g := gatewaytest.New(t, service.Options{Log: slog.New(slog.NewTextHandler(buffer, nil))}, handlers.Gateway{
		AdminToken: token,
		Proxies: config.Login{
			TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
			UserHeader:     "X-Forwarded-User", GroupsHeader: "X-Forwarded-Groups",
			Roles: domain.RoleLists{Viewers: []string{"staff"}, Operators: []string{"jo@example.com"}, Admins: []string{"platform"}},
		},
	})
	if _, err := g.Projects.Add(t.Context(), "hidden-project", "http://127.0.0.1:1", nil); err != nil {
		t.Fatal(err)
	}
	return guarded{g.HTTP.Handler(), buffer, g.Store, g.Service}
}

func TestATrustedProxySaysWhoAsks(t *testing.T) {
	g := newProxied(t, "")
	const read, write, admin = "GET /api/gateway", "POST /api/gateway/switch", "GET /api/gateway/sessions"
	for _, c := range []struct {
		who                string
		from               string
		headers            []string
		read, write, admin int
	}{
		{"an administrator", proxy, []string{"X-Forwarded-User", "kit", "X-Forwarded-Groups", "staff, platform"}, 200, 200, 200},
		{"groups in two lines", proxy, []string{"X-Forwarded-User", "kit", "X-Forwarded-Groups", "staff", "X-Forwarded-Groups", "platform"}, 200, 200, 200},
		{"an operator, by address", proxy, []string{"X-Forwarded-User", "Jo@example.com"}, 200, 200, 403},
		{"a viewer", proxy, []string{"X-Forwarded-User", "kit", "X-Forwarded-Groups", "staff"}, 200, 403, 403},
		{"nobody of ours", proxy, []string{"X-Forwarded-User", "kit", "X-Forwarded-Groups", "guests"}, 403, 403, 403},
		{"a name that is a group's", proxy, []string{"X-Forwarded-User", "platform"}, 403, 403, 403},
		{"groups without a name", proxy, []string{"X-Forwarded-Groups", "platform"}, 401, 401, 401},
		{"two names", proxy, []string{"X-Forwarded-User", "jo@example.com", "X-Forwarded-User", "kit"}, 401, 401, 401},
		{"no name", proxy, []string{"X-Forwarded-User", "", "X-Forwarded-Groups", "platform"}, 401, 401, 401},
		{"a stranger", stranger, []string{"X-Forwarded-User", "kit", "X-Forwarded-Groups", "platform"}, 401, 401, 401},
		{"one who claims to be forwarded", stranger, []string{"X-Forwarded-For", "10.0.0.1", "X-Forwarded-User", "kit", "X-Forwarded-Groups", "platform"}, 401, 401, 401},
		{"a wrong token beside it", proxy, []string{"X-Forwarded-User", "kit", "X-Forwarded-Groups", "platform", "Authorization", "Bearer wrong"}, 401, 401, 401},
	} {
		for route, want := range map[string]int{read: c.read, write: c.write, admin: c.admin} {
			method, path, _ := strings.Cut(route, " ")
			body, headers := "", c.headers
			if method == "POST" {
				body, headers = `{"project":"hidden-project"}`, append([]string{"Content-Type", "application/json"}, headers...)
			}
			answer := g.send(c.from, method, path, body, headers...)
			if answer.StatusCode != want || want != 200 && strings.Contains(bodyOf(answer), "hidden-project") {
				t.Errorf("%s, %s: %d, want %d", c.who, route, answer.StatusCode, want)
			}
		}
	}
}

func TestThePagesOfSomebodyWhomAProxyNames(t *testing.T) {
	g := newProxied(t, "")
	kit := []string{"X-Forwarded-User", "kit", "X-Forwarded-Groups", "staff"}
	if answer := g.send(proxy, "GET", "/", "", kit...); answer.StatusCode != 200 || strings.Contains(bodyOf(answer), "Log out") {
		t.Errorf("the overview: %d", answer.StatusCode)
	}
	if answer := g.send(proxy, "GET", "/login?next=/agents", "", kit...); answer.StatusCode != 303 || answer.Header.Get("Location") != "/agents" {
		t.Errorf("the login: %d to %s", answer.StatusCode, answer.Header.Get("Location"))
	}
	refused := g.send(proxy, "GET", "/", "", "X-Forwarded-User", "kit<b>")
	if text := bodyOf(refused); refused.StatusCode != 403 || !strings.Contains(text, "You are kit&lt;b&gt;, but have no access to this gateway") || strings.Contains(text, "hidden-project") {
		t.Errorf("somebody without a role: %d, %s", refused.StatusCode, text)
	}
	if answer := g.send(proxy, "GET", "/agents", ""); answer.StatusCode != 303 || answer.Header.Get("Location") != "/login?next=%2Fagents" {
		t.Errorf("nobody: %d to %s", answer.StatusCode, answer.Header.Get("Location"))
	}
}

func TestTokensAndSessionsComeBeforeWhatAProxySays(t *testing.T) {
	g := newProxied(t, gatewaytest.AdminToken)
	kit := []string{"X-Forwarded-User", "kit", "X-Forwarded-Groups", "staff"}
	if answer := g.send(proxy, "GET", "/api/gateway/sessions", "", append(kit, "Authorization", "Bearer "+gatewaytest.AdminToken)...); answer.StatusCode != 200 {
		t.Errorf("with the admin token: %d", answer.StatusCode)
	}
	if answer := g.send(proxy, "GET", "/api/gateway/sessions", "", append(kit, "Cookie", g.session(t))...); answer.StatusCode != 200 {
		t.Errorf("with a session: %d", answer.StatusCode)
	}
	if answer := g.send(stranger, "GET", "/api/gateway", "", "Cookie", g.session(t)); answer.StatusCode != 200 {
		t.Errorf("with a session, not through the proxy: %d", answer.StatusCode)
	}
}

func TestAUserHeaderWithoutTrustedProxiesIsNothing(t *testing.T) {
	g := gatewaytest.New(t, service.Options{}, handlers.Gateway{Proxies: config.Login{UserHeader: "X-Forwarded-User"}})
	open := guarded{Handler: g.HTTP.Handler()}
	if answer := open.send(here, "GET", "/api/gateway", ""); answer.StatusCode != 200 {
		t.Errorf("status %d", answer.StatusCode)
	}
}
