package mcp_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"switchyard/handlers"
	"switchyard/internal/gatewaytest"
	"switchyard/internal/service"
)

// TestMCPTakesHostileArguments: the answer to each is an error that says what is wrong.
func TestMCPTakesHostileArguments(t *testing.T) {
	s := newMCPSite(t)
	s.Add("alpha", gatewaytest.StoryServer(t))
	s.Answered()
	long := strings.Repeat("x", 100_000)
	for _, c := range []struct{ tool, arguments string }{
		{"overview", `{"extra":1}`},
		{"list_stories", `{"project":1}`},
		{"list_stories", `{"project":"` + long + `"}`},
		{"list_stories", `{"stage":"` + long + `"}`},
		{"get_story", `{"project":"alpha","story_id":"../../etc/passwd"}`},
		{"get_story", `{"project":"alpha","story_id":"` + long + `"}`},
		{"get_story", `{"project":"alpha"}`},
		{"get_story", `[]`},
		{"wait_for_events", `{"after":-1}`},
		{"wait_for_events", `{"after":1.5}`},
		{"wait_for_events", `{"wait":"-1s"}`},
		{"wait_for_events", `{"wait":"50s","after":-1}`},
		{"wait_for_events", `{"wait":"50s","extra":1}`},
		{"search", `{"q":"a","limit":51}`},
		{"search", `{"q":"` + long + `"}`},
		{"update_story", `{"project":"alpha","story_id":"7_pay","blocked":{"a":1}}`},
		{"call_project_tool", `{"tool":"a","arguments":[]}`},
		{"call_project_tool", `{"tool":"a","arguments":{"a":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}}`},
	} {
		began := time.Now()
		result, err := s.session.CallTool(t.Context(), &sdk.CallToolParams{Name: c.tool, Arguments: json.RawMessage(c.arguments)})
		if took := time.Since(began); took > 30*time.Second {
			t.Errorf("%s %.60s: refused after %v", c.tool, c.arguments, took)
		}
		if err == nil && !result.IsError {
			t.Errorf("%s %.60s: no error", c.tool, c.arguments)
		}
		if err == nil {
			if text := result.Content[0].(*sdk.TextContent).Text; len(text) > 4000 {
				t.Errorf("%s %.60s: an error of %d bytes", c.tool, c.arguments, len(text))
			}
		}
	}
	batch := "[" + strings.Repeat(`{"jsonrpc":"2.0","id":1,"method":"ping"},`, 16) + `{"jsonrpc":"2.0","id":1,"method":"ping"}]`
	for name, c := range map[string]struct {
		method, media, body string
		status              int
	}{
		"GET":             {"GET", "", "", 405},
		"DELETE":          {"DELETE", "", "", 405},
		"form":            {"POST", "text/plain", `{}`, 415},
		"large":           {"POST", "application/json", strings.Repeat(" ", 2<<20), 413},
		"empty":           {"POST", "application/json", "", 400},
		"no JSON":         {"POST", "application/json", "{", 400},
		"many at once":    {"POST", "application/json", batch, 400},
		"no such version": {"POST", "application/json", `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{}}`, 200},
	} {
		request, err := http.NewRequest(c.method, s.URL+"/mcp", strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header = http.Header{"Content-Type": {c.media}, "Accept": {"application/json, text/event-stream"}}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != c.status {
			t.Errorf("%s: %d, want %d", name, response.StatusCode, c.status)
		}
		if c.status == 405 && response.Header.Get("Allow") != "POST" {
			t.Errorf("%s: Allow: %q", name, response.Header.Get("Allow"))
		}
	}
}

// TestMCPOfEveryVersion, also under the host name that a proxy forwards.
func TestMCPOfEveryVersion(t *testing.T) {
	s := newMCPSite(t)
	for _, version := range []string{newestMCP, "2025-11-25", "2025-06-18", "2025-03-26", oldestMCP} {
		proxied := &http.Client{Transport: underHost("yard.example")}
		s.session = connectMCP(t, s.URL, version, proxied)
		if got := s.session.InitializeResult().ProtocolVersion; got != version {
			t.Errorf("%s: the gateway speaks %s", version, got)
		}
		s.want("overview", `{}`, `"you":{"by":"admin"}`)
		prompts, err := s.session.ListPrompts(t.Context(), nil)
		if err != nil || len(prompts.Prompts) != 2 {
			t.Errorf("%s: prompts: %v", version, err)
		}
		for _, name := range []string{"standup", "triage"} {
			prompt, err := s.session.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: name})
			if err != nil || len(prompt.Messages) != 1 {
				t.Errorf("%s: %s: %v", version, name, err)
			}
		}
	}
	request, err := http.NewRequest("POST", s.URL+"/mcp", strings.NewReader(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	request.Host = "other.example"
	if response, err := http.DefaultClient.Do(request); err != nil || response.StatusCode != 403 {
		t.Errorf("a host name that is not allowed: %v %v", response, err)
	}
}

// underHost sends requests under another host name.
type underHost string

func (h underHost) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Host = string(h)
	return http.DefaultTransport.RoundTrip(r)
}

// post posts a message of an early version and returns the answer.
func (s mcpSite) post(message string) string {
	s.Helper()
	request := httptest.NewRequest("POST", s.URL+"/mcp", strings.NewReader(message))
	request.RequestURI = ""
	request.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		s.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		s.Fatal(err)
	}
	return string(body)
}

// TestMCPWaitsEndWithTheServer: a server that stops answers waiting calls with the events so far.
func TestMCPWaitsEndWithTheServer(t *testing.T) {
	for _, version := range []string{newestMCP, oldestMCP} {
		g := gatewaytest.New(t, service.Options{}, handlers.Gateway{})
		server, stop := g.ServeUntil(t)
		session := connectMCP(t, server.URL, version, nil)
		time.AfterFunc(50*time.Millisecond, stop)
		began := time.Now()
		result, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "wait_for_events", Arguments: json.RawMessage(`{"wait":"50s"}`)})
		if err != nil || result.IsError || time.Since(began) > 40*time.Second {
			t.Errorf("%s: %v %v after %v", version, result, err, time.Since(began))
		}
	}
}
