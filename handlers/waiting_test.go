package handlers_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"switchyard/handlers"
	"switchyard/internal/domain"
)

func TestGatewayThatWaitsForItsDatabaseSaysSoInTheFormOfEachAddress(t *testing.T) {
	reason := domain.Errorf(domain.Unavailable, "the database cannot be reached: connection refused")
	for _, g := range []handlers.Gateway{{}, {AdminToken: "0123456789abcdefghij"}} {
		g.Log = slog.New(slog.DiscardHandler)
		server := httptest.NewServer(g.Waiting(func() error { return reason }))
		defer server.Close()
		for _, c := range []struct {
			method, path string
			status       int
			media, says  string
		}{
			{"GET", "/healthz", 200, "text/plain", "ok"},
			{"GET", "/readyz", 503, "text/plain", reason.Message},
			{"GET", "/api/gateway", 503, "text/plain", reason.Message},
			{"POST", "/gateway/agents", 503, "text/plain", reason.Message},
			{"POST", "/gateway/agents/x/heartbeat", 503, "text/plain", reason.Message},
			{"POST", "/api/gateway/switch", 503, "application/json", `{"ok":false,"error":"` + reason.Message + `"}`},
			{"POST", "/mcp", 503, "text/plain", reason.Message},
			{"GET", "/", 503, "text/html", reason.Message},
			{"GET", "/projects/alpha", 503, "text/html", reason.Message},
			{"POST", "/login", 503, "text/html", reason.Message},
			{"GET", "/nowhere", 503, "text/plain", reason.Message},
			{"PUT", "/api/gateway", 503, "text/plain", reason.Message},
		} {
			request, _ := http.NewRequestWithContext(t.Context(), c.method, server.URL+c.path, strings.NewReader("{}"))
			request.Header.Set("Content-Type", "application/json")
			answer, err := http.DefaultTransport.RoundTrip(request)
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(answer.Body)
			answer.Body.Close()
			if answer.StatusCode != c.status || !strings.HasPrefix(answer.Header.Get("Content-Type"), c.media) || !strings.Contains(string(body), c.says) {
				t.Errorf("%s %s: %d %s %.200s", c.method, c.path, answer.StatusCode, answer.Header.Get("Content-Type"), body)
			}
		}
	}
}
