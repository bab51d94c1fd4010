package handlers_test

import (
	"context"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"switchyard/handlers"
	"switchyard/internal/gatewaytest"
	"switchyard/internal/service"
)

// Versions of the protocol.
const newestMCP, oldestMCP = "2026-07-28", "2024-11-05"

// mcpSite is a gateway with the SDK's own client connected to it.
type mcpSite struct {
	apiSite
	session *sdk.ClientSession
}

func newMCPSite(t *testing.T) mcpSite {
	client := newProjectClient(t)
	g := gatewaytest.New(t, service.Options{Projects: client, Stories: client, Tools: client}, handlers.Gateway{AllowHosts: []string{"yard.example"}})
	s := apiSite{t, g.Service, g.Serve(t).URL, g.Store}
	return mcpSite{s, connectMCP(t, s.url, newestMCP, nil)}
}

func connectMCP(t *testing.T, url, version string, client *http.Client) *sdk.ClientSession {
	t.Helper()
	transport := &sdk.StreamableClientTransport{Endpoint: url + "/mcp", HTTPClient: client}
	session, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), transport, &sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close() })
	return session
}

// call calls a tool and returns its one text, and whether it is an error.
func (s mcpSite) call(tool, arguments string) (text string, isError bool) {
	s.Helper()
	result, err := s.session.CallTool(s.Context(), &sdk.CallToolParams{Name: tool, Arguments: json.RawMessage(arguments)})
	if err != nil {
		s.Fatalf("%s %s: %v", tool, arguments, err)
	}
	if len(result.Content) != 1 {
		s.Fatalf("%s %s: %d contents", tool, arguments, len(result.Content))
	}
	content, ok := result.Content[0].(*sdk.TextContent)
	if !ok {
		s.Fatalf("%s %s: %T", tool, arguments, result.Content[0])
	}
	return content.Text, result.IsError
}

// want calls a tool that must answer with an object that has these parts.
func (s mcpSite) want(tool, arguments string, parts ...string) {
	s.Helper()
	text, isError := s.call(tool, arguments)
	var object map[string]any
	if isError || json.Unmarshal([]byte(text), &object) != nil {
		s.Errorf("%s %s: %v %s", tool, arguments, isError, text)
	}
	for _, part := range parts {
		if !strings.Contains(text, part) {
			s.Errorf("%s %s: %s\nlacks %s", tool, arguments, text, part)
		}
	}
}

// refused calls a tool that must answer with an error that has this part.
func (s mcpSite) refused(tool, arguments, part string) {
	s.Helper()
	if text, isError := s.call(tool, arguments); !isError || !strings.Contains(text, part) {
		s.Errorf("%s %s: %v %q, want the error %q", tool, arguments, isError, text, part)
	}
}

func TestMCPListIsSmall(t *testing.T) {
	s := newMCPSite(t)
	tools, err := s.session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range tools.Tools {
		names = append(names, tool.Name)
	}
	slices.Sort(names)
	want := []string{
		"acknowledge", "assign_agent", "call_project_tool", "get_story", "list_agents", "list_stories", "overview", "project_tools", "search",
		"switch_project", "update_story", "wait_for_events",
	}
	if !slices.Equal(names, want) {
		t.Errorf("tools: %q\nwant %q", names, want)
	}
	if tools.CacheScope != "private" {
		t.Errorf("the list may be cached as %q", tools.CacheScope)
	}
	request, err := http.NewRequest("POST", s.url+"/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`))
	if err != nil {
		t.Fatal(err)
	}
	request.Header = http.Header{"Content-Type": {asJSON}, "Accept": {"application/json, text/event-stream"}}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != 200 {
		t.Fatal(response.Status, err)
	}
	if len(body) > 8<<10 {
		t.Errorf("the list of tools has %d bytes, want 8 KiB at most", len(body))
	}
}

func TestMCPReads(t *testing.T) {
	s := newMCPSite(t)
	s.want("overview", `{}`, `"active":null`, `"projects":[]`, `"attention":[]`, `"next":0`)
	s.refused("get_story", `{"project":"alpha","story_id":"7_pay"}`, "There are no projects yet")
	s.add("alpha", storyServer(t))
	s.add("away", "http://127.0.0.1:1")
	s.record("alpha", eventOf(t, `{"type":"story_blocked","story_id":"7_pay","story_name":"Pay","reason":"why","timestamp_ms":1000}`))
	for i := range 60 {
		s.record("alpha", eventOf(t, fmt.Sprintf(`{"type":"merge_failure","story_id":"%d_other","story_name":"Other","reason":"why","timestamp_ms":%d}`, i, 2000+i)))
	}
	s.want("overview", `{}`, `"name":"alpha"`, `{"name":"2_current","stories":1}`, `"more":0`, `"next":61`)
	s.want("list_stories", `{"project":"alpha"}`, `"story_id":"7_pay"`, `"stage":"2_current"`, `"more":0`)
	s.want("list_stories", `{"stage":"Current"}`, `"story_id":"7_pay"`)
	s.want("list_stories", `{"trouble":true}`, `"stories":[`)
	s.refused("list_stories", `{"stage":"nosuch"}`, "2_current")
	s.want("get_story", `{"project":"alpha","story_id":"7_pay"}`, `"version":"v1"`, `"body":"# Pay"`, `"history":[{"id":1,`, `"next":61`)
	s.refused("get_story", `{"project":"alpha","story_id":"1_never"}`, "list_stories shows the ids")
	s.refused("get_story", `{"project":"beta","story_id":"1_never"}`, "There are: alpha, away.")
	s.want("wait_for_events", `{"after":0}`, `"events":[{"id":1,`, `"next":50`)
	s.want("wait_for_events", `{"after":50}`, `"events":[{"id":51,`, `"next":61`)
	s.want("wait_for_events", `{"after":61}`, `"events":[],"next":61`)
	s.want("wait_for_events", `{}`, `"id":61,`, `"next":61`)
	s.want("wait_for_events", `{"after":0,"project":"alpha","story_id":"7_pay"}`, `"events":[{"id":1,`, `"next":61`, `"story":{"stage":"2_current","blocked":null`)
	s.refused("wait_for_events", `{"wait":"soon"}`, "wait: must be a duration")
	s.want("search", `{"q":"other","limit":5}`, `_other","story_name":"Other","stage":null}`, `"more":55`)
	s.refused("search", `{"q":"  "}`, "q: must be")
	s.want("list_agents", `{}`, `"agents":[],"more":0`)
}

func TestMCPChanges(t *testing.T) {
	s := newMCPSite(t)
	s.add("alpha", storyServer(t))
	s.want("switch_project", `{"project":"alpha"}`, `"active":"alpha"`)
	s.refused("switch_project", `{"project":"beta"}`, "There are: alpha.")
	if active := s.Projects.Registry().Active; active != "alpha" {
		t.Errorf("%q is active", active)
	}
	token, _, err := s.Agents.CreateJoinToken(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	agent, _, err := s.Agents.Join(t.Context(), token, nil, "1")
	if err != nil {
		t.Fatal(err)
	}
	s.want("assign_agent", `{"agent_id":"`+agent.ID+`","project":"alpha"}`, `"assigned_project":"alpha"`)
	s.want("assign_agent", `{"agent_id":"`+agent.ID+`","project":null}`, `"assigned_project":null`)
	s.refused("assign_agent", `{"agent_id":"`+agent.ID+`"}`, "project")
	s.refused("assign_agent", `{"agent_id":"x","project":"alpha"}`, "list_agents has the ids")
	const story = `{"project":"alpha","story_id":"7_pay",`
	s.refused("update_story", story+`"stage":"3_qa","version":"v0"}`, "Read the story again with get_story")
	s.add("away", "http://127.0.0.1:1")
	s.want("list_stories", `{"project":"away"}`, `"unreachable":[{"project":"away","error":"connection refused"}]`)
	s.want("overview", `{}`, `"key":"unreachable/away"`, `"acknowledged_by":null`)
	s.refused("acknowledge", `{"key":"unreachable/away","for":"-1h"}`, "for: must be a duration")
	s.refused("acknowledge", `{"key":"unreachable/alpha"}`, "overview shows the keys")
	s.want("acknowledge", `{"key":"unreachable/away","for":"1h"}`, `"ok":true`)
	s.want("overview", `{}`, `"acknowledged_by":"admin"`)
	s.refused("update_story", `{"project":"alpha","story_id":"7_pay"}`, "nothing to change")
	s.refused("update_story", `{"project":"alpha","story_id":"8_gone","stage":"3_qa"}`, "list_stories")
}

// TestMCPTakesNullForNone: models write so what they do not want to give.
func TestMCPTakesNullForNone(t *testing.T) {
	s := newMCPSite(t)
	s.add("alpha", storyServer(t))
	s.want("list_stories", `{"project":null,"stage":null,"trouble":null}`, "7_pay")
	s.want("wait_for_events", `{"after":null,"project":null,"story_id":null,"wait":null}`, `"events":[]`)
	const asked = "the story has changed" // says the project server, which is as far as it can come here
	s.refused("update_story", `{"project":"alpha","story_id":"7_pay","stage":"3_qa","version":null,"clear_merge_failure":null}`, asked)
	s.refused("update_story", `{"project":"alpha","story_id":"7_pay","blocked":null}`, asked)
	s.refused("get_story", `{"project":"alpha","story_id":null}`, "story_id")
	s.refused("update_story", `{"project":"alpha","story_id":"7_pay","stage":null}`, "nothing to change")
}

// TestMCPTakesHostileArguments: none of them is more than an error that says what is wrong.
func TestMCPTakesHostileArguments(t *testing.T) {
	s := newMCPSite(t)
	s.add("alpha", storyServer(t))
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
		{"search", `{"q":"a","limit":51}`},
		{"search", `{"q":"` + long + `"}`},
		{"update_story", `{"project":"alpha","story_id":"7_pay","blocked":{"a":1}}`},
		{"call_project_tool", `{"tool":"a","arguments":[]}`},
		{"call_project_tool", `{"tool":"a","arguments":{"a":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}}`},
	} {
		result, err := s.session.CallTool(t.Context(), &sdk.CallToolParams{Name: c.tool, Arguments: json.RawMessage(c.arguments)})
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
		"large":           {"POST", asJSON, strings.Repeat(" ", 1<<20+1), 413},
		"empty":           {"POST", asJSON, "", 400},
		"no JSON":         {"POST", asJSON, "{", 400},
		"many at once":    {"POST", asJSON, batch, 400},
		"no such version": {"POST", asJSON, `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{}}`, 200},
	} {
		request, err := http.NewRequest(c.method, s.url+"/mcp", strings.NewReader(c.body))
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

// TestMCPOfEveryVersion also comes under the host name that a proxy in front forwards.
func TestMCPOfEveryVersion(t *testing.T) {
	s := newMCPSite(t)
	for _, version := range []string{newestMCP, "2025-11-25", "2025-06-18", "2025-03-26", oldestMCP} {
		proxied := &http.Client{Transport: underHost("yard.example")}
		s.session = connectMCP(t, s.url, version, proxied)
		if got := s.session.InitializeResult().ProtocolVersion; got != version {
			t.Errorf("%s: the gateway speaks %s", version, got)
		}
		s.want("overview", `{}`, `"projects":[]`)
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
	request, err := http.NewRequest("POST", s.url+"/mcp", strings.NewReader(`{}`))
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

func TestMCPResources(t *testing.T) {
	s := newMCPSite(t)
	s.add("a b/c", storyServer(t))
	for uri, want := range map[string]string{
		"switchyard://projects/a%20b%2Fc":                `"name":"a b/c","reachable":true`,
		"switchyard://projects/a%20b%2Fc/stories/7_pay":  `"story_id":"7_pay"`,
		"switchyard://projects/a%20b%2Fc/stories/1_none": "",
		"switchyard://projects/none":                     "",
		"switchyard://other":                             "",
	} {
		result, err := s.session.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri})
		switch {
		case want == "" && err == nil:
			t.Errorf("%s: no error", uri)
		case want != "" && (err != nil || !strings.Contains(result.Contents[0].Text, want)):
			t.Errorf("%s: %v %v", uri, result, err)
		}
	}
	templates, err := s.session.ListResourceTemplates(t.Context(), nil)
	if err != nil || len(templates.ResourceTemplates) != 2 {
		t.Errorf("templates: %v %v", templates, err)
	}
}

// TestMCPCallsAProjectsOwnTools: what they answer comes back as it is, content of unknown types and large numbers among it.
func TestMCPCallsAProjectsOwnTools(t *testing.T) {
	s := newMCPSite(t)
	own := sdk.NewServer(&sdk.Implementation{Name: "own", Version: "1"}, nil)
	sdk.AddTool(own, &sdk.Tool{Name: "greet", Description: "Greets"}, func(_ context.Context, r *sdk.CallToolRequest, in struct {
		Name string `json:"name"`
	},
	) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "hello " + in.Name + " " + r.Extra.Header.Get("Authorization")}}}, nil, nil
	})
	for name, options := range map[string]*sdk.StreamableHTTPOptions{"streams": nil, "plain": {JSONResponse: true, Stateless: true}} {
		handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return own }, options)
		s.addWithToken(name, upstreamServer(t, says(boardText), func(mux *http.ServeMux) { mux.Handle("/mcp", handler) }), "stored")
		s.want("project_tools", `{"project":"`+name+`"}`, `"name":"greet"`, `"inputSchema":{`, `"more":0`)
		text, isError := s.call("call_project_tool", `{"project":"`+name+`","tool":"greet","arguments":{"name":"you"}}`)
		if text != "hello you Bearer stored" || isError {
			t.Errorf("%s: %q %v", name, text, isError)
		}
		s.refused("call_project_tool", `{"project":"`+name+`","tool":"nosuch","arguments":{}}`, "project_tools lists what there is")
	}
	const foreign = `{"content":[{"type":"future","n":12345678901234567890}],"structuredContent":{"n":12345678901234567890},"isError":true}`
	s.add("foreign", upstreamServer(t, says(boardText), func(mux *http.ServeMux) {
		mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
			var message struct {
				ID     int
				Method string
			}
			_ = json.NewDecoder(r.Body).Decode(&message)
			result := map[string]string{"initialize": `{"protocolVersion":"2025-06-18"}`, "tools/call": foreign}[message.Method]
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%d,"result":%s}`, message.ID, result)
		})
	}))
	body := s.post(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"call_project_tool","arguments":{"project":"foreign","tool":"t","arguments":{}}}}`)
	if !strings.Contains(body, `"content":[{"type":"future","n":12345678901234567890}],"structuredContent":{"n":12345678901234567890},"isError":true`) {
		t.Errorf("foreign content: %s", body)
	}
	s.refused("project_tools", `{}`, "no project is active")
	s.add("none", upstreamServer(t, says(boardText)))
	s.refused("project_tools", `{"project":"none"}`, "has no MCP server")
	s.add("away", "http://127.0.0.1:1")
	s.refused("call_project_tool", `{"project":"away","tool":"t","arguments":{}}`, "connection refused")
	s.add("moved", upstreamServer(t, says(boardText), func(mux *http.ServeMux) {
		mux.Handle("/mcp", http.RedirectHandler("http://127.0.0.1:1/", http.StatusTemporaryRedirect))
	}))
	s.refused("call_project_tool", `{"project":"moved","tool":"t","arguments":{}}`, "redirects")
	s.add("large", upstreamServer(t, says(boardText), func(mux *http.ServeMux) {
		mux.HandleFunc("/mcp", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 9<<20)) })
	}))
	s.refused("call_project_tool", `{"project":"large","tool":"t","arguments":{}}`, "too large")
	s.add("metadata", "http://169.254.169.254")
	s.refused("call_project_tool", `{"project":"metadata","tool":"t","arguments":{}}`, "not allowed")
}

func (s mcpSite) addWithToken(name, url, token string) {
	s.Helper()
	if got := s.send("POST", "/api/gateway/projects", `{"name":"`+name+`","url":"`+url+`","token":"`+token+`"}`); got.status != 200 {
		s.Fatal(got)
	}
}

// post posts a message of an early version and returns the answer.
func (s mcpSite) post(message string) string {
	s.Helper()
	request := httptest.NewRequest("POST", s.url+"/mcp", strings.NewReader(message))
	request.RequestURI = ""
	request.Header = http.Header{"Content-Type": {asJSON}, "Accept": {"application/json, text/event-stream"}}
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

// TestMCPWaitsEndWithTheServer: one that stops answers what waits with what there is.
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

func TestTheAgentsPageSaysHowCodingAgentsConnect(t *testing.T) {
	g := newGuarded(t, adminToken, "key")
	page := html.UnescapeString(bodyOf(g.send(here, "GET", "/agents", "", "Cookie", g.session(t))))
	for _, part := range []string{
		`claude mcp add --transport http switchyard http://localhost/mcp --header "Authorization: Bearer $SWITCHYARD_API_TOKEN"`,
		`bearer_token_env_var = "SWITCHYARD_API_TOKEN"`, `"Authorization": "Bearer ${env:SWITCHYARD_API_TOKEN}"`, `"args": [`, `data-copy="mcp-claude"`,
	} {
		if !strings.Contains(page, part) {
			t.Errorf("the page lacks %s", part)
		}
	}
	open := newGuarded(t, "", "key")
	page = html.UnescapeString(bodyOf(open.send(here, "GET", "/agents", "", "X-Forwarded-Proto", "https")))
	if !strings.Contains(page, "claude mcp add --transport http switchyard https://localhost/mcp<") || strings.Contains(page, "API_TOKEN") {
		t.Errorf("of a gateway that asks for no token: %s", page)
	}
}
