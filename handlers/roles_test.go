package handlers_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"switchyard/internal/domain"
	"switchyard/internal/gatewaytest"
	"switchyard/internal/service"
)

// neededRole is the role that each route needs; "" is for everybody, "agent" for the agent's own secret. TestEveryRouteHasItsRole
// fails for a route that is missing here.
var neededRole = map[string]domain.Role{
	"GET /healthz": "", "GET /readyz": "", "GET /static/*": "", "GET /login": "", "POST /login": "",
	"GET /login/start": "", "HEAD /login/start": "", "GET /login/callback": "", "HEAD /login/callback": "",
	"GET /callback": "", "HEAD /callback": "", "GET /oauth/callback": "", "HEAD /oauth/callback": "",
	"POST /bot/team/events": "", "POST /bot/team/commands": "",
	"POST /gateway/agents": "", "POST /gateway/agents/{id}/heartbeat": "agent", "POST /gateway/agents/{id}/token": "agent",

	"GET /metrics": "viewer", "GET /api/openapi.json": "viewer", "GET /gateway/mode": "viewer", "GET /gateway/agents": "viewer",
	"GET /api/gateway": "viewer", "GET /api/gateway/pipeline": "viewer", "GET /api/gateway/search": "viewer",
	"GET /api/gateway/projects/{name}/stories/{story_id}": "viewer", "GET /api/gateway/projects/{name}/stories/{story_id}/picture": "viewer", "GET /api/gateway/attention": "viewer", "GET /api/gateway/projects": "viewer",
	"GET /api/gateway/bot": "viewer", "GET /api/events": "viewer", "GET /api/gateway/events": "viewer",
	"GET /api/gateway/events/stream": "viewer", "POST /mcp": "viewer", "GET /oauth/status": "viewer", "HEAD /oauth/status": "viewer",
	"GET /": "viewer", "GET /projects": "viewer", "GET /projects/{name}": "viewer",
	"GET /projects/{name}/stories/{story_id}": "viewer", "GET /agents": "viewer", "GET /api/gateway/cost": "viewer", "GET /cost.csv": "viewer", "GET /events": "viewer", "GET /search": "viewer", "GET /palette": "viewer", "GET /waiting": "viewer", "GET /notifications": "viewer", "GET /notifications/digests/{id}": "viewer", "GET /questions": "viewer", "GET /api/gateway/questions": "viewer", "GET /api/gateway/agent-sessions": "viewer", "GET /api/gateway/questions/{id}": "viewer", "GET /flow": "viewer", "GET /flow.csv": "viewer", "GET /flow/{number}": "viewer", "GET /api/gateway/flow": "viewer", "GET /wall": "wall",
	"GET /manifest.webmanifest": "viewer", "GET /push-worker.js": "viewer", "POST /notifications/devices/{id}/remove": "viewer",
	"GET /api/gateway/push": "viewer", "POST /api/gateway/push": "viewer", "DELETE /api/gateway/push/{id}": "viewer",
	"POST /theme": "viewer", "POST /logout": "viewer",

	"POST /gateway/tokens": "operator", "POST /gateway/agents/{id}/assign": "operator", "POST /api/gateway/switch": "operator",
	"GET /api/gateway/projects/{name}/stories/{story_id}/changes": "viewer",
	"POST /api/gateway/projects/{name}/stories/{story_id}/review": "operator",
	"POST /api/gateway/projects/{name}/stories/{story_id}/merge":  "operator",
	"POST /api/gateway/projects/{name}/stories/claim":             "operator", "DELETE /api/gateway/projects/{name}/stories/{story_id}/claim": "operator",
	"PATCH /api/gateway/projects/{name}/stories/{story_id}": "operator", "POST /api/gateway/projects/{name}/stories": "operator",
	"POST /api/gateway/attention/acknowledge": "operator", "POST /api/gateway/attention/reopen": "operator",
	"POST /api/gateway/bot/test": "operator", "POST /questions/{id}/answer": "operator", "POST /api/gateway/questions": "operator", "DELETE /api/gateway/questions/{id}": "operator", "POST /api/gateway/questions/{id}/answer": "operator", "POST /api/hooks/claude-code": "operator", "POST /v1/logs": "operator", "POST /v1/metrics": "operator", "POST /v1/traces": "operator", "POST /api/gateway/usage": "operator", "POST /projects/{name}/stories": "operator",
	"POST /projects/{name}/stories/{story_id}": "operator", "POST /switch": "operator", "POST /agents": "operator",
	"POST /attention/acknowledge": "operator", "POST /tell": "operator", "POST /attention/reopen": "operator",
	"POST /agents/{id}/assign": "operator", "POST /agents/{id}/label": "operator", "GET /agents/tokens/{hash}": "operator",
	"POST /agents/tokens/{hash}/revoke": "operator",

	"POST /notifications": "admin", "POST /notifications/preview": "admin", "POST /notifications/test": "admin", "POST /notifications/{id}": "admin", "POST /notifications/{id}/{do}": "admin",
	"DELETE /gateway/agents/{id}": "admin", "POST /api/gateway/projects": "admin", "PUT /api/gateway/projects/{name}": "admin",
	"DELETE /api/gateway/projects/{name}": "admin", "GET /api/gateway/bot-config": "admin", "POST /api/gateway/bot-config": "admin",
	"GET /api/gateway/targets": "admin", "POST /api/gateway/targets": "admin", "PUT /api/gateway/targets/{id}": "admin",
	"DELETE /api/gateway/targets/{id}": "admin", "POST /api/gateway/targets/{id}/test": "admin", "POST /api/gateway/targets/{id}/secret": "admin",
	"POST /api/gateway/targets/{id}/resend": "admin", "GET /api/gateway/targets/{id}/deliveries": "admin",
	"GET /api/gateway/tokens": "admin", "POST /api/gateway/tokens": "admin", "DELETE /api/gateway/tokens/{id}": "admin",
	"GET /api/gateway/sessions": "admin", "DELETE /api/gateway/sessions/{id}": "admin",
	"GET /api/gateway/audit": "admin", "GET /oauth/authorize": "admin", "HEAD /oauth/authorize": "admin", "POST /oauth/sign-out": "admin",
	"POST /projects": "admin", "POST /projects/{name}": "admin", "POST /projects/{name}/remove": "admin",
	"GET /access": "admin", "POST /access": "admin", "POST /access/tokens/{id}/revoke": "admin",
	"POST /access/sessions/{id}/end": "admin", "POST /access/sessions/end-others": "admin", "GET /audit": "admin", "GET /audit.csv": "admin", "POST /check-address": "admin", "POST /restore-project": "admin", "POST /remove-sample": "admin", "POST /agents/{id}/remove": "admin", "GET /bot-config": "admin",
	"GET /sign-in/setup": "admin", "GET /sign-in": "admin", "POST /sign-in": "admin", "POST /sign-out": "admin",
}

// okFalseRoutes are the routes whose failures have the form {"ok":false,"error":…}.
var okFalseRoutes = map[string]bool{
	"POST /api/gateway/switch": true, "POST /api/gateway/attention/acknowledge": true, "POST /api/gateway/attention/reopen": true,
	"POST /api/gateway/bot-config": true, "POST /api/gateway/bot/test": true, "POST /api/gateway/targets/{id}/test": true,
}

// namedToken issues a token with a role.
func TestEveryRouteHasItsRole(t *testing.T) {
	s := gatewaytest.NewWholeSite(t, service.Options{}, "correct-horse")
	g := s.HTTP
	s.Add("alpha", "http://127.0.0.1:1")
	roles := []domain.Role{domain.RoleViewer, domain.RoleOperator, domain.RoleAdmin}
	tokens := map[domain.Role]string{}
	for _, role := range roles {
		_, tokens[role] = gatewaytest.NamedToken(t, s.Service, "the "+string(role), role)
	}
	missing := map[string]bool{}
	for route := range neededRole {
		missing[route] = true
	}
	eachRoute(t, g, func(method, pattern string) {
		route := method + " " + pattern
		needed, known := neededRole[route]
		if !known {
			t.Errorf("%s: which role does it need?", route)
			return
		}
		delete(missing, route)
		for _, role := range roles {
			request, _ := http.NewRequest(method, s.URL+address(pattern), nil)
			request.Header.Set("Authorization", "Bearer "+tokens[role])
			response, err := http.DefaultTransport.RoundTrip(request)
			if err != nil {
				t.Fatal(err)
			}
			refused := response.StatusCode == http.StatusForbidden
			switch {
			case needed == "agent":
				if response.StatusCode != http.StatusUnauthorized {
					t.Errorf("%s as %s: %d, want 401", route, role, response.StatusCode)
				}
			case refused != (needed != "" && !role.Allows(needed)):
				t.Errorf("%s as %s: %d; it needs %q", route, role, response.StatusCode, needed)
			case refused && method != http.MethodHead:
				body, _ := io.ReadAll(response.Body)
				wantRefusal(t, route, response.Header.Get("Content-Type"), string(body))
			case response.StatusCode == http.StatusUnauthorized && needed != "":
				t.Errorf("%s as %s: 401", route, role)
			}
			response.Body.Close()
		}
	})
	for route := range missing {
		t.Errorf("%s is not a route", route)
	}
}

// wantRefusal checks the form of a refusal: a page for people, JSON for okFalseRoutes, plain text elsewhere.
func wantRefusal(t *testing.T, route, media, body string) {
	t.Helper()
	_, path, _ := strings.Cut(route, " ")
	isAPI := path == "/metrics" || path == "/mcp"
	for _, below := range []string{"/api/", "/gateway/", "/v1/", "/oauth/status", "/oauth/sign-out"} {
		isAPI = isAPI || strings.HasPrefix(path, below)
	}
	want := "text/html"
	switch {
	case okFalseRoutes[route]:
		want = "application/json"
		var refusal struct {
			OK    *bool
			Error string
		}
		if json.Unmarshal([]byte(body), &refusal) != nil || refusal.OK == nil || *refusal.OK || refusal.Error == "" {
			t.Errorf("%s is refused with %s", route, body)
		}
	case isAPI:
		want = "text/plain"
	}
	if !strings.HasPrefix(media, want) || !strings.Contains(body, "role") {
		t.Errorf("%s is refused as %s: %s", route, media, body)
	}
}

// TestTheRoleIsCheckedWithAuthentication: it is checked after the guards, and before the request itself.
func TestTheRoleIsCheckedWithAuthentication(t *testing.T) {
	g := newGuarded(t, gatewaytest.AdminToken, "key")
	_, token := gatewaytest.NamedToken(t, g.service, "dashboard", domain.RoleViewer)
	auth := []string{"Authorization", "Bearer " + token}
	for _, c := range []struct {
		method, path, body string
		headers            []string
		status             int
		says               string
	}{
		{"POST", "/api/gateway/switch", strings.Repeat("x", 2<<20), auth, 403, "role"},
		{"POST", "/api/gateway/switch", "", append([]string{"Sec-Fetch-Site", "cross-site"}, auth...), 403, "cross-origin"},
		{"DELETE", "/api/gateway/projects/none", "", auth, 403, "role"},
		{"DELETE", "/api/gateway/switch", "", auth, 405, ""},
		{"POST", "/api/gateway/none", "", auth, 404, ""},
	} {
		answer := g.send(here, c.method, c.path, c.body, c.headers...)
		if text := bodyOf(answer); answer.StatusCode != c.status || !strings.Contains(text, c.says) {
			t.Errorf("%s %s: %d %s, want %d, %s", c.method, c.path, answer.StatusCode, text, c.status, c.says)
		}
	}
}
