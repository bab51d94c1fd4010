package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"switchyard/handlers"
	"switchyard/internal/domain"
	"switchyard/internal/gatewaytest"
	"switchyard/internal/service"
)

// Versions of the protocol.
const newestMCP, oldestMCP = "2026-07-28", "2024-11-05"

// mcpSite is a gateway with the SDK's own client connected to it.
type mcpSite struct {
	*gatewaytest.Site
	session *sdk.ClientSession
}

func newMCPSite(t *testing.T) mcpSite {
	client := gatewaytest.NewProjectClient(t)
	g := gatewaytest.New(t, service.Options{Projects: client, Stories: client, Tools: client}, handlers.Gateway{AllowHosts: []string{"yard.example"}})
	s := g.Site(t)
	return mcpSite{s, connectMCP(t, s.URL, newestMCP, nil)}
}

func connectMCP(t testing.TB, url, version string, client *http.Client) *sdk.ClientSession {
	t.Helper()
	transport := &sdk.StreamableClientTransport{Endpoint: url + "/mcp", HTTPClient: client}
	session, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), transport, &sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close() })
	return session
}

// call calls a tool and returns its only text, and whether it is an error.
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

// want calls a tool, which must answer with an object that contains these parts.
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

// refused calls a tool, which must answer with an error that contains this part.
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
		"acknowledge", "ask", "assign_agent", "call_project_tool", "claim_story", "get_changes", "get_story", "list_agents", "list_stories", "overview", "permission", "project_tools",
		"release_story", "search", "switch_project", "update_story", "wait_for_events",
	}
	if !slices.Equal(names, want) {
		t.Errorf("tools: %q\nwant %q", names, want)
	}
	if tools.CacheScope != "private" {
		t.Errorf("the list may be cached as %q", tools.CacheScope)
	}
	request, err := http.NewRequest("POST", s.URL+"/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`))
	if err != nil {
		t.Fatal(err)
	}
	request.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != 200 {
		t.Fatal(response.Status, err)
	}
	if len(body) > 12<<10 {
		t.Errorf("the list of tools has %d bytes, want 12 KiB at most", len(body))
	}
}

// TestTheOverviewTellsTheFlow of all projects in a sentence.
func TestTheOverviewTellsTheFlow(t *testing.T) {
	s := newMCPSite(t)
	s.Add("alpha", gatewaytest.ProjectServer(t, gatewaytest.Says(`{"project":"x","stages":[{"name":"1_backlog","items":[]},{"name":"2_current","items":`+
		`[{"story_id":"7_pay","story_name":"Pay","blocked":null,"merge_failure":null,"since_ms":5}]},{"name":"3_done","items":[]}]}`)))
	s.Answered()
	s.want("overview", `{}`, `"flow":"0 stories finished in 90 days, too few to say how long a story takes; 1 in work."`)
	for i := range 10 { // whose only known moves are those that finish them
		s.Record("alpha", fmt.Sprintf(`{"type":"stage_transition","story_id":"%d_done","story_name":"Done","from_stage":"2_current","to_stage":"3_done","timestamp_ms":%d}`, i, time.Now().UnixMilli()))
	}
	s.want("overview", `{}`, `"flow":"10 stories finished in 90 days: half within 1 day, 85 % within 1 day; 1 in work."`)
}

func TestMCPReads(t *testing.T) {
	s := newMCPSite(t)
	s.want("overview", `{}`, `{"you":{"by":"admin"},"more":0,"more_attention":0,"agents":0,`, `"next":0`)
	s.refused("get_story", `{"project":"alpha","story_id":"7_pay"}`, "There are no projects yet")
	s.Add("alpha", gatewaytest.StoryServer(t))
	s.Add("away", "http://127.0.0.1:1")
	s.Answered()
	s.Record("alpha", `{"type":"story_blocked","story_id":"7_pay","story_name":"Pay","reason":"why","timestamp_ms":1000}`)
	for i := range 60 {
		s.Record("alpha", fmt.Sprintf(`{"type":"merge_failure","story_id":"%d_other","story_name":"Other","reason":"why","timestamp_ms":%d}`, i, 2000+i))
	}
	s.want("overview", `{}`, `"name":"alpha"`, `{"name":"2_current","stories":1}`, `"more":0`, `"next":61`)
	s.want("list_stories", `{"project":"alpha"}`, `"story_id":"7_pay"`, `"stage":"2_current"`, `"more":0`)
	s.want("list_stories", `{"stage":"Current"}`, `"story_id":"7_pay"`)
	s.want("list_stories", `{"trouble":true}`, `"stories":[`)
	s.refused("list_stories", `{"stage":"nosuch"}`, "2_current")
	s.want("get_story", `{"project":"alpha","story_id":"7_pay"}`, `"version":"v1"`, `"body":"# Pay"`, `"history":[{"id":1,`, `"cost":null`, `"next":61`)
	if _, err := s.Costs.RecordOne(t.Context(), domain.Call{Key: "1", Client: "x", Model: "m", Project: "alpha", StoryID: "7_pay", Stated: new(domain.Micros(1_500_000))}); err != nil {
		t.Fatal(err)
	}
	s.want("get_story", `{"project":"alpha","story_id":"7_pay"}`, `"cost":{"usd":1.5,`, `"models":[{"model":"m","usd":1.5,`)
	s.refused("get_story", `{"project":"alpha","story_id":"1_never"}`, "Its stories are: 7_pay.")
	s.refused("claim_story", `{"project":"alpha","story_id":"1_never"}`, "Its stories are: 7_pay.")
	s.refused("get_story", `{"project":"beta","story_id":"1_never"}`, "There are: alpha, away.")
	s.want("wait_for_events", `{"after":0}`, `"events":[{"id":1,`, `"next":50`)
	s.want("wait_for_events", `{"after":50}`, `"events":[{"id":51,`, `"next":61`)
	s.want("wait_for_events", `{"after":61}`, `"events":[],"next":61`)
	s.want("wait_for_events", `{}`, `"id":61,`, `"next":61`)
	s.want("wait_for_events", `{"after":0,"project":"alpha","story_id":"7_pay"}`, `"events":[{"id":1,`, `"next":61`, `"story":{"stage":"2_current","blocked":null`)
	s.refused("wait_for_events", `{"after":62,"wait":"30s"}`, "the newest event is 61")
	s.refused("wait_for_events", `{"wait":"soon"}`, "wait: must be a duration")
	s.want("search", `{"q":"other","limit":5}`, `_other","story_name":"Other","stage":null}`, `"more":55`)
	s.refused("search", `{"q":"  "}`, "q: must be")
	s.want("list_agents", `{}`, `"agents":[],"more":0`)
}

func TestMCPChanges(t *testing.T) {
	s := newMCPSite(t)
	s.Add("alpha", gatewaytest.StoryServer(t))
	s.want("switch_project", `{"project":"alpha"}`, `"active":"alpha"`)
	s.refused("switch_project", `{"project":"beta"}`, "There are: alpha.")
	if active := s.Projects.Registry().Active; active != "alpha" {
		t.Errorf("%q is active", active)
	}
	token, _, err := s.Agents.CreateJoinToken(t.Context(), "")
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
	s.Add("away", "http://127.0.0.1:1")
	s.Answered()
	s.want("list_stories", `{"project":"away"}`, `"unreachable":[{"project":"away","error":"connection refused"}]`)
	s.want("overview", `{}`, `"key":"unreachable/away"`)
	s.refused("acknowledge", `{"key":"unreachable/away","for":"-1h"}`, "for: must be a duration")
	s.refused("acknowledge", `{"key":"unreachable/alpha"}`, "overview shows the keys")
	s.want("acknowledge", `{"key":"unreachable/away","for":"1h"}`, `"ok":true`)
	s.want("overview", `{}`, `"acknowledged_by":"admin"`)
	s.refused("update_story", `{"project":"alpha","story_id":"7_pay"}`, "nothing to change")
	s.refused("update_story", `{"project":"alpha","story_id":"8_gone","stage":"3_qa"}`, "Its stories are: 7_pay")
}

// TestMCPTakesNullForNone: models write null for arguments that they leave out.
func TestMCPTakesNullForNone(t *testing.T) {
	s := newMCPSite(t)
	s.Add("alpha", gatewaytest.StoryServer(t))
	s.Answered()
	s.want("list_stories", `{"project":null,"stage":null,"trouble":null}`, "7_pay")
	s.want("wait_for_events", `{"after":null,"project":null,"story_id":null,"wait":null}`, `"events":[]`)
	const asked = "the story has changed" // the project server's refusal, which shows that the call reached it
	s.refused("update_story", `{"project":"alpha","story_id":"7_pay","stage":"3_qa","version":null,"clear_merge_failure":null}`, asked)
	s.refused("update_story", `{"project":"alpha","story_id":"7_pay","blocked":null}`, asked)
	s.refused("get_story", `{"project":"alpha","story_id":null}`, "story_id")
	s.refused("update_story", `{"project":"alpha","story_id":"7_pay","stage":null}`, "nothing to change")
}

func TestMCPResources(t *testing.T) {
	s := newMCPSite(t)
	s.Add("a b/c", gatewaytest.StoryServer(t))
	s.Answered()
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

// TestMCPCallsAProjectsOwnTools: their answers are passed on unchanged, including content of unknown types and large numbers.
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
		s.addWithToken(name, gatewaytest.ProjectServer(t, gatewaytest.Says(gatewaytest.BoardText), func(mux *http.ServeMux) { mux.Handle("/mcp", handler) }), "stored")
		s.want("project_tools", `{"project":"`+name+`"}`, `"name":"greet"`, `"inputSchema":{`, `"more":0`)
		text, isError := s.call("call_project_tool", `{"project":"`+name+`","tool":"greet","arguments":{"name":"you"}}`)
		if text != "hello you Bearer stored" || isError {
			t.Errorf("%s: %q %v", name, text, isError)
		}
		s.refused("call_project_tool", `{"project":"`+name+`","tool":"nosuch","arguments":{}}`, "project_tools lists its tools")
	}
	const foreign = `{"content":[{"type":"future","n":12345678901234567890}],"structuredContent":{"n":12345678901234567890},"isError":true}`
	s.Add("foreign", gatewaytest.ProjectServer(t, gatewaytest.Says(gatewaytest.BoardText), func(mux *http.ServeMux) {
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
	s.Add("none", gatewaytest.ProjectServer(t, gatewaytest.Says(gatewaytest.BoardText)))
	s.refused("project_tools", `{"project":"none"}`, "has no MCP server")
	s.Add("away", "http://127.0.0.1:1")
	s.refused("call_project_tool", `{"project":"away","tool":"t","arguments":{}}`, "connection refused")
	s.Add("moved", gatewaytest.ProjectServer(t, gatewaytest.Says(gatewaytest.BoardText), func(mux *http.ServeMux) {
		mux.Handle("/mcp", http.RedirectHandler("http://127.0.0.1:1/", http.StatusTemporaryRedirect))
	}))
	s.refused("call_project_tool", `{"project":"moved","tool":"t","arguments":{}}`, "answers with a redirect")
	s.Add("large", gatewaytest.ProjectServer(t, gatewaytest.Says(gatewaytest.BoardText), func(mux *http.ServeMux) {
		mux.HandleFunc("/mcp", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 9<<20)) })
	}))
	s.refused("call_project_tool", `{"project":"large","tool":"t","arguments":{}}`, "too large")
	s.Add("metadata", "http://169.254.169.254")
	s.refused("call_project_tool", `{"project":"metadata","tool":"t","arguments":{}}`, "not allowed")
}

func TestMCPCallToTheGatewayItselfIsPassedOnOnce(t *testing.T) {
	s := newMCPSite(t)
	s.Add("self", s.URL)
	overview := `{"project":"self","tool":"overview","arguments":{}}`
	s.want("call_project_tool", overview, `"projects":[`)
	again := `{"project":"self","tool":"call_project_tool","arguments":` + overview + `}`
	s.refused("call_project_tool", again, "came through a gateway already")
	s.refused("call_project_tool", `{"project":"self","tool":"project_tools","arguments":{"project":"self"}}`, "came through a gateway already")
	s.refused("call_project_tool", `{"project":"self","tool":"get_story","arguments":{"project":"self","story_id":"7_pay"}}`, "came through a gateway already")
}

func (s mcpSite) addWithToken(name, url, token string) {
	s.Helper()
	if got := s.Send("POST", "/api/gateway/projects", `{"name":"`+name+`","url":"`+url+`","token":"`+token+`"}`); got.StatusCode != 200 {
		s.Fatal(got)
	}
}

func TestMCPSearchFindsTexts(t *testing.T) {
	s := newMCPSite(t)
	s.Add("alpha", gatewaytest.ProjectServer(t, gatewaytest.Says(gatewaytest.BoardText), func(mux *http.ServeMux) {
		mux.HandleFunc("GET /api/search", gatewaytest.Says(`{"texts":[{"story_id":"7_pay","story_name":"Pay","stage":"2_current",`+
			`"heading":"How","excerpt":"A needle.","whole":true}],"total":3}`))
	}))
	s.Answered()
	s.want("search", `{"q":"needle"}`, `"stories":[]`, `"texts":[{"project":"alpha","story_id":"7_pay","story_name":"Pay","stage":"2_current","excerpt":"A needle."}]`, `"more":2`)
}

func TestMCPSearchSaysWhatWasMeant(t *testing.T) {
	s := newMCPSite(t)
	s.Add("webshop", gatewaytest.StoryServer(t))
	s.Answered()
	s.want("search", `{"q":"webshpo"}`, `"projects":[]`, `"more":0`, `"did_you_mean":"webshop"`)
	s.want("search", `{"q":"webshop"}`, `"projects":[{"name":"webshop"}]`, `"did_you_mean":null`)
}
