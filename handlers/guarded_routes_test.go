package handlers_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"

	"switchyard/handlers"
	"switchyard/internal/gatewaytest"
	"switchyard/internal/service"
)

// eachRoute calls f for every route of the gateway.
func eachRoute(t *testing.T, g handlers.Gateway, f func(method, pattern string)) {
	t.Helper()
	err := chi.Walk(handlers.Routes(g), func(method, pattern string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		f(method, pattern)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// address returns a path for a route's pattern.
func address(pattern string) string {
	return strings.NewReplacer("{name}", "alpha", "{id}", "none", "{story_id}", "none", "{hash}", "none", "*", "none").Replace(pattern)
}

// publicRoutes are the routes that need no administrator; all others do, including new ones.
var publicRoutes = map[string]bool{
	"GET /healthz": true, "GET /readyz": true, "GET /static/*": true, "GET /login": true, "POST /gateway/agents": true,
	"GET /callback": true, "HEAD /callback": true, "GET /oauth/callback": true, "HEAD /oauth/callback": true,
	"HEAD /login/start": true, "HEAD /login/callback": true,
}

// ownSecrets are the routes that need other secrets.
var ownSecrets = map[string]bool{
	"POST /login": true, "GET /login/start": true, "GET /login/callback": true, "POST /gateway/agents/{id}/heartbeat": true, "POST /gateway/agents/{id}/token": true, "DELETE /gateway/agents/{id}": true,
	"POST /bot/team/events": true, "POST /bot/team/commands": true,
}

func TestEveryRouteIsGuarded(t *testing.T) {
	s := gatewaytest.NewWholeSite(t, service.Options{}, "correct-horse")
	g := s.HTTP
	s.Add("alpha", "http://127.0.0.1:1")
	eachRoute(t, g, func(method, pattern string) {
		send := func(host string, headers ...string) int {
			request, err := http.NewRequest(method, s.URL+address(pattern), nil)
			if err != nil {
				t.Fatal(err)
			}
			if request.Host = host; host == "" {
				request.Host = strings.TrimPrefix(s.URL, "http://")
			}
			for i := 0; i < len(headers); i += 2 {
				request.Header.Set(headers[i], headers[i+1])
			}
			response, err := http.DefaultTransport.RoundTrip(request)
			if err != nil {
				t.Fatal(err)
			}
			response.Body.Close()
			return response.StatusCode
		}
		if status := send("evil.test"); status != 403 {
			t.Errorf("%s %s under a foreign host: %d", method, pattern, status)
		}
		if method != "GET" && method != "HEAD" {
			for _, site := range []string{"cross-site", "same-site"} {
				if status := send("", "Sec-Fetch-Site", site); status != 403 {
					t.Errorf("%s %s from another site: %d", method, pattern, status)
				}
			}
			if status := send("", "Origin", "http://evil.test"); status != 403 {
				t.Errorf("%s %s from another origin: %d", method, pattern, status)
			}
		}
		status := send("")
		if refused := status == 401 || status == 303; refused == publicRoutes[method+" "+pattern] && !ownSecrets[method+" "+pattern] {
			t.Errorf("%s %s without the admin token: %d", method, pattern, status)
		}
	})
	if len(s.Projects.Registry().Projects) != 1 {
		t.Error("a refused request changed something")
	}
}

// TestEveryPageForbidsForeignContent, including error pages.
func TestEveryPageForbidsForeignContent(t *testing.T) {
	s := gatewaytest.NewWholeSite(t, service.Options{}, "")
	g := s.HTTP
	pages := 0
	eachRoute(t, g, func(method, pattern string) {
		if strings.HasPrefix(pattern, "/api/") {
			return // one of these is a stream without end
		}
		answer := s.Send(method, address(pattern), "")
		if !strings.HasPrefix(answer.Media(), "text/html") {
			return
		}
		pages++
		for _, name := range []string{"Content-Security-Policy", "Referrer-Policy", "X-Content-Type-Options"} {
			if answer.Header.Get(name) == "" {
				t.Errorf("%s %s: no %s", method, pattern, name)
			}
		}
	})
	if pages < 20 {
		t.Errorf("only %d pages", pages)
	}
}
