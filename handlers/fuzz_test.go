package handlers_test

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"switchyard/internal/gatewaytest"
	"switchyard/internal/service"
	"switchyard/internal/web"
)

// fuzzedGateway returns the handler of a gateway with a project alpha. It is shutting down, so that no request waits.
func fuzzedGateway(f *testing.F) (http.Handler, context.Context) {
	s := gatewaytest.NewWholeSite(f, service.Options{}, "")
	g := s.HTTP
	s.Add("alpha", "http://127.0.0.1:1")
	stopping, stop := context.WithCancel(f.Context())
	stop()
	ctx := context.WithValue(f.Context(), http.LocalAddrContextKey, &net.TCPAddr{Port: 3000}) // like a server
	return g.Handler(), web.WithStopping(ctx, stopping)
}

// FuzzBody sends any body to each route that accepts one: the request succeeds or is refused, but never fails.
func FuzzBody(f *testing.F) {
	routes := []string{
		"POST /gateway/tokens", "POST /gateway/agents", "POST /gateway/agents/none/heartbeat", "POST /gateway/agents/none/assign",
		"POST /api/gateway/switch", "POST /api/gateway/projects", "PUT /api/gateway/projects/alpha", "POST /api/gateway/bot-config",
		"POST /api/gateway/bot/test", "POST /oauth/sign-out",
		"POST /projects", "POST /projects/alpha", "POST /switch", "POST /agents/none/assign", "POST /sign-in", "POST /login",
	}
	for i, body := range []string{
		"", "{}", "null", "[]", `{"token":"swj_x","label":"l","version":1}`, `{"state":"idle","detail":"\u0000"}`, `{"project":null}`,
		`{"project":"alpha","Project":7}`, `{"name":"b","url":"http://[::1]:99999","token":""}`, `{"url":"http://127.0.0.1:2/a%2Fb"}`,
		`{"transport":"team","password":"\ud800","team_bot_token":null}`, `{"transport":"matrix","homeserver":{}}`, "{\"name\":\"\xff\"}",
		`{"name":"a","name":"b"}{}`, "name=c&url=http://127.0.0.1:3&name=%zz", "project=alpha;", "callback=code%23state",
	} {
		f.Add(uint8(i%len(routes)), "application/json", body)
		f.Add(uint8(i%len(routes)), "application/x-www-form-urlencoded", body)
	}
	handler, ctx := fuzzedGateway(f)
	f.Fuzz(func(t *testing.T, route uint8, media, body string) {
		method, path, _ := strings.Cut(routes[int(route)%len(routes)], " ")
		r := httptest.NewRequestWithContext(ctx, method, "http://localhost"+path, strings.NewReader(body))
		r.Header.Set("Content-Type", media)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code >= 500 {
			t.Errorf("%s %s: %d, %.100s", method, path, w.Code, w.Body)
		}
		if w.Header().Get("Content-Type") == "application/json" && !json.Valid(w.Body.Bytes()) {
			t.Errorf("%s %s answers %s", method, path, w.Body)
		}
	})
}

// FuzzQuery sends any query to each route that reads one: the request succeeds or is refused, but never fails.
func FuzzQuery(f *testing.F) {
	paths := []string{"/api/gateway/events", "/events", "/", "/projects", "/projects/alpha", "/agents", "/login", "/sign-in"}
	for i, query := range []string{
		"", "after=0&limit=1000&wait=60s", "before=", "before=0&project=alpha&type=feed_gap", "after=9223372036854775807", "after=9223372036854775808",
		"after=1&before=1", "limit=0", "wait=-1s", "wait=9999999h", "from=1&day=2024-02-30&q=%25_%5C", "v=0&day=0000-00-00", "a;b", "%zz", "next=//evil.test",
	} {
		f.Add(uint8(i%len(paths)), query, i%2 == 0)
		f.Add(uint8(0), query, false)
	}
	handler, ctx := fuzzedGateway(f)
	f.Fuzz(func(t *testing.T, path uint8, query string, part bool) {
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, "http://localhost"+paths[int(path)%len(paths)], nil)
		r.URL.RawQuery = query
		if part {
			r.Header.Set("HX-Request", "true")
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code >= 500 {
			t.Errorf("%s?%s: %d, %.100s", r.URL.Path, query, w.Code, w.Body)
		}
		if to, err := url.Parse(w.Header().Get("Location")); err != nil || to.Host != "" {
			t.Errorf("%s?%s leads to %s", r.URL.Path, query, w.Header().Get("Location"))
		}
	})
}
