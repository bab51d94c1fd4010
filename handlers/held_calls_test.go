package handlers_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"switchyard/handlers"
	"switchyard/internal/domain"
	"switchyard/internal/gatewaytest"
	"switchyard/internal/service"
	"switchyard/internal/waittest"
)

// waiter makes calls that wait, with a token.
type waiter struct {
	testing.TB
	url, token string
}

func (w waiter) send(ctx context.Context, method, path, body string) (int, string, error) {
	request := httptest.NewRequestWithContext(ctx, method, w.url+path, strings.NewReader(body))
	request.RequestURI = ""
	request.Header = http.Header{
		"Authorization": {"Bearer " + w.token}, "Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	if response.Header.Get("Content-Type") == "text/event-stream" {
		<-ctx.Done()
		return response.StatusCode, "", nil
	}
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(text), err
}

func (w waiter) wantRefused(path string) {
	w.Helper()
	status, text, err := w.send(w.Context(), "GET", path, "")
	if err != nil || status != http.StatusTooManyRequests || !strings.Contains(text, "64 calls") {
		w.Errorf("%s: %d %q, %v; want 429 that says so", path, status, text, err)
	}
}

// countedStories counts the requests for stories, which are made by MCP's waits that are held.
type countedStories struct {
	service.StoryServers // only Story is called
	requests             atomic.Int64
}

func (c *countedStories) Story(context.Context, domain.Project, string) (domain.Story, error) {
	c.requests.Add(1)
	return domain.Story{}, domain.Errorf(domain.NotFound, "the project server has no such story")
}

// TestACallerHolds64Calls: waits of all kinds count together, for each caller, and nobody else is refused.
func TestACallerHolds64Calls(t *testing.T) {
	stories := &countedStories{}
	g := gatewaytest.NewSite(t, service.Options{Stories: stories}, handlers.Gateway{AdminToken: gatewaytest.AdminToken})
	server := g.Server
	if _, err := g.Projects.Add(t.Context(), "alpha", "http://127.0.0.1:1", nil); err != nil {
		t.Fatal(err)
	}
	_, one := gatewaytest.NamedToken(t, g.Service, "one", domain.RoleOperator)
	_, two := gatewaytest.NamedToken(t, g.Service, "one", domain.RoleViewer) // of the same name
	w, other := waiter{t, server.URL, one}, waiter{t, server.URL, two}
	var calls []string
	for i := range 16 {
		calls = append(calls, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"wait_for_events",`+
			`"arguments":{"wait":"50s","project":"alpha","story_id":"1"}}}`, i))
	}
	batch := "[" + strings.Join(calls, ",") + "]"
	var held sync.WaitGroup
	var first string
	held.Go(func() { _, first, _ = w.send(t.Context(), "POST", "/mcp", batch) })
	waittest.Until(t, "each call of the batch is held", func() bool { return stories.requests.Load() >= 16 })
	ctx, end := context.WithCancel(t.Context())
	var refused atomic.Int64
	for i := range 60 {
		path := []string{"/api/gateway/events?wait=1m", "/api/events?wait=1m", "/api/gateway/events/stream"}[i%3]
		held.Go(func() {
			if status, _, _ := w.send(ctx, "GET", path, ""); status == http.StatusTooManyRequests {
				refused.Add(1)
			}
		})
	}
	waittest.Until(t, "12 of 76 are refused", func() bool { return refused.Load() == 12 })
	w.wantRefused("/api/gateway/events?wait=1s")
	w.wantRefused("/api/events?wait=1s")
	w.wantRefused("/api/gateway/events/stream")
	if _, answer, err := w.send(t.Context(), "POST", "/mcp", batch); strings.Count(answer, `"isError":true`) != 16 || !strings.Contains(answer, "64 calls") {
		t.Errorf("another batch is answered %s, %v", answer, err)
	}
	if status, text, err := w.send(t.Context(), "POST", "/api/gateway/projects/alpha/stories/claim", `{"wait":"1s"}`); status != http.StatusTooManyRequests || !strings.Contains(text, "64 calls") {
		t.Errorf("a claim: %d %q, %v", status, text, err)
	}
	const claim = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"claim_story","arguments":{"project":"alpha","wait":"1s"}}}`
	if _, text, err := w.send(t.Context(), "POST", "/mcp", claim); !strings.Contains(text, `"isError":true`) || !strings.Contains(text, "64 calls") {
		t.Errorf("a claim over MCP: %q, %v", text, err)
	}
	if status, _, err := w.send(t.Context(), "GET", "/api/gateway/events", ""); status != http.StatusOK {
		t.Errorf("a call that does not wait: %d, %v", status, err)
	}
	if status, _, err := other.send(t.Context(), "GET", "/api/gateway/events?wait=1ms", ""); status != http.StatusOK {
		t.Errorf("another token's call: %d, %v", status, err)
	}
	g.Record("alpha", `{"type":"story_blocked","story_id":"1","timestamp_ms":1}`)
	end()
	held.Wait()
	if strings.Contains(first, `"isError":true`) {
		t.Errorf("the first batch is answered %s", first)
	}
	if status, _, err := w.send(t.Context(), "GET", "/api/gateway/events?wait=1ms", ""); status != http.StatusOK {
		t.Errorf("afterwards: %d, %v", status, err)
	}
}

// TestAGatewayHolds1024Calls of all callers together.
func TestAGatewayHolds1024Calls(t *testing.T) {
	g := gatewaytest.New(t, service.Options{}, handlers.Gateway{AdminToken: gatewaytest.AdminToken})
	server := g.Serve(t)
	ctx, end := context.WithCancel(t.Context())
	var held sync.WaitGroup
	var refused atomic.Int64
	for i := range 17 {
		_, token := gatewaytest.NamedToken(t, g.Service, fmt.Sprint(i), domain.RoleViewer)
		for range 64 {
			held.Go(func() {
				status, text, _ := waiter{t, server.URL, token}.send(ctx, "GET", "/api/gateway/events?wait=1m", "")
				if status == http.StatusTooManyRequests && strings.Contains(text, "1024 calls") {
					refused.Add(1)
				}
			})
		}
	}
	waittest.Until(t, "64 are refused", func() bool { return refused.Load() == 64 })
	end()
	held.Wait()
}
