package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"switchyard/internal/domain"
	"switchyard/internal/waittest"
)

// connectStdio connects the SDK's client through "switchyard mcp".
func connectStdio(t *testing.T, cmd *exec.Cmd, version string) *sdk.ClientSession {
	t.Helper()
	session, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(
		t.Context(), &sdk.CommandTransport{Command: cmd}, &sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close() })
	return session
}

// callTool returns the object in a tool's result.
func callTool(t *testing.T, session *sdk.ClientSession, tool, arguments string) (answer map[string]any) {
	t.Helper()
	result, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: json.RawMessage(arguments)})
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	text := result.Content[0].(*sdk.TextContent).Text
	if result.IsError || json.Unmarshal([]byte(text), &answer) != nil {
		t.Fatalf("%s %s: %s", tool, arguments, text)
	}
	return answer
}

// TestACodingAgentWorksOverStdio: it lists, gets and blocks its story, waits until it is unblocked, and moves it on.
func TestACodingAgentWorksOverStdio(t *testing.T) {
	t.Parallel()
	const token = "a-token-of-the-administrator"
	dir := t.TempDir()
	work := filepath.Join(dir, "alpha", "work")
	stages(t, work, "7_pay")
	if err := os.Mkdir(filepath.Join(work, "3_qa"), 0o755); err != nil {
		t.Fatal(err)
	}
	up := switchyard(t, dir, "up", "DIR/alpha/work", "--listen=localhost:0", "--data=DIR/data", "--bot-config=DIR/bot.toml", "--credentials=DIR/credentials.json")
	up.Env = append(up.Env, "SWITCHYARD_ADMIN_TOKEN="+token)
	p := start(t, up)
	for _, version := range []string{"2026-07-28", "2024-11-05"} {
		pipe := switchyard(t, dir, "mcp", "--gateway="+p.url)
		pipe.Env = append(pipe.Env, "SWITCHYARD_API_TOKEN="+token)
		session := connectStdio(t, pipe, version)
		if got := session.InitializeResult().ProtocolVersion; got != version {
			t.Errorf("%s: the gateway speaks %s", version, got)
		}
		const story = `{"project":"alpha","story_id":"7_pay"`
		waittest.Until(t, version+": the story is listed in its stage", func() bool {
			listed := callTool(t, session, "list_stories", `{"project":"alpha","stage":"current"}`)["stories"].([]any)
			return len(listed) == 1 && listed[0].(map[string]any)["story_id"] == "7_pay"
		})
		if got := callTool(t, session, "get_story", story+`}`); got["writable"] != true || got["blocked"] != nil {
			t.Fatalf("%s: story: %v", version, got)
		}
		before, _ := json.Marshal(callTool(t, session, "wait_for_events", `{}`)["next"])
		if got := callTool(t, session, "update_story", story+`,"blocked":"which currency? <EUR> & \"USD\""}`); got["blocked"] != `which currency? <EUR> & "USD"` {
			t.Fatalf("%s: blocked: %v", version, got)
		}
		blocked := callTool(t, session, "wait_for_events", story+`,"after":`+string(before)+`,"wait":"30s"}`)
		if len(blocked["events"].([]any)) == 0 || blocked["story"].(map[string]any)["blocked"] == nil {
			t.Fatalf("%s: events: %v", version, blocked)
		}
		after, _ := json.Marshal(blocked["next"])
		waited := make(chan map[string]any, 1)
		go func() {
			result, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "wait_for_events", Arguments: json.RawMessage(story + `,"after":` + string(after) + `,"wait":"50s"}`)})
			var answer map[string]any
			if err == nil {
				_ = json.Unmarshal([]byte(result.Content[0].(*sdk.TextContent).Text), &answer)
			}
			waited <- answer
		}()
		other := connectStdio(t, withEnv(switchyard(t, dir, "mcp", "--gateway="+p.url), "SWITCHYARD_API_TOKEN="+token), "")
		callTool(t, other, "update_story", story+`,"blocked":null}`)
		if answer := <-waited; answer == nil || answer["story"].(map[string]any)["blocked"] != nil {
			t.Fatalf("%s: waited for unblocked: %v", version, answer)
		}
		if got := callTool(t, session, "update_story", story+`,"stage":"3_qa"}`); got["stage"] != "3_qa" {
			t.Fatalf("%s: moved: %v", version, got)
		}
		moved := callTool(t, session, "wait_for_events", story+`,"after":`+string(after)+`,"wait":"30s"}`)
		text, _ := json.Marshal(moved["events"])
		if !strings.Contains(string(text), `"to_stage":"3_qa"`) {
			t.Fatalf("%s: events: %s", version, text)
		}
		callTool(t, session, "update_story", story+`,"stage":"2_current"}`)
	}
}

// TestTheCommandOfAnAgentWorksOverMCP: with its environment it reports that it is blocked and moves its story on, in its own project
// only, over HTTP and stdio, until the assignment ends.
func TestTheCommandOfAnAgentWorksOverMCP(t *testing.T) {
	t.Parallel()
	const admin = "a-token-of-the-administrator"
	s := &site{t: t, dir: t.TempDir()}
	for _, name := range []string{"alpha", "beta"} {
		work := filepath.Join(s.dir, name, "work")
		stages(t, work, "7_pay")
		if err := os.Mkdir(filepath.Join(work, "3_qa"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	up := switchyard(t, s.dir, "up", "DIR/alpha/work", "DIR/beta/work", "--listen=localhost:0", "--data=DIR/data", "--agent=local",
		"--", "sh", "-c", `echo "$SWITCHYARD_MCP_URL $SWITCHYARD_API_TOKEN" > "$0.new"; mv "$0.new" "$0"; exec sleep 1000`, "DIR/given")
	s.process = start(t, withEnv(up, "SWITCHYARD_ADMIN_TOKEN="+admin))
	s.process.bearer = admin
	agent := s.wait("joined", func(a domain.Agent) bool { return a.Label == "local" })
	s.assign(agent.ID, "alpha")
	var url, token string
	waittest.Until(t, "the command runs", func() bool {
		data, _ := os.ReadFile(filepath.Join(s.dir, "given"))
		n, _ := fmt.Sscan(string(data), &url, &token)
		return n == 2
	})
	if strings.Contains(s.stderr.String(), token) {
		t.Error("the log holds the token")
	}
	overHTTP, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), &sdk.StreamableClientTransport{
		Endpoint: url, HTTPClient: &http.Client{Transport: withToken(token)},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	pipe := withEnv(switchyard(t, s.dir, "mcp"), "SWITCHYARD_MCP_URL="+url, "SWITCHYARD_API_TOKEN="+token)
	for way, session := range map[string]*sdk.ClientSession{"http": overHTTP, "stdio": connectStdio(t, pipe, "")} {
		const story = `{"project":"alpha","story_id":"7_pay"`
		claimed, _ := callTool(t, session, "claim_story", story+`}`)["story"].(map[string]any)
		if claim, _ := claimed["claim"].(map[string]any); claim["by"] != "local" || claim["agent_id"] != agent.ID {
			t.Errorf("%s: claimed: %v", way, claimed)
		}
		if none := callTool(t, session, "claim_story", `{"project":"alpha","resume":false}`); none["story"] != nil {
			t.Errorf("%s: the next: %v", way, none)
		}
		resumed, _ := callTool(t, session, "claim_story", `{}`)["story"].(map[string]any)
		if resumed["story_id"] != "7_pay" {
			t.Errorf("%s: it goes on with %v", way, resumed)
		}
		callTool(t, session, "update_story", story+`,"blocked":"which currency?"}`)
		callTool(t, session, "update_story", story+`,"blocked":null,"stage":"3_qa"}`)
		if got := callTool(t, session, "get_story", `{"project":"beta","story_id":"7_pay"}`); got["stage"] != "2_current" {
			t.Errorf("%s: the other project's story: %v", way, got)
		}
		for _, c := range []struct{ tool, arguments, says string }{
			{"update_story", `{"project":"beta","story_id":"7_pay","stage":"3_qa"}`, "project 'alpha' only"},
			{"claim_story", `{"project":"beta"}`, "project 'alpha' only"},
			{"claim_story", story + `,"take_over":true}`, "role operator"},
			{"switch_project", `{"project":"beta"}`, "role operator"},
		} {
			result, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: c.tool, Arguments: json.RawMessage(c.arguments)})
			if err != nil || !result.IsError || !strings.Contains(result.Content[0].(*sdk.TextContent).Text, c.says) {
				t.Errorf("%s: %s: %+v, %v", way, c.tool, result, err)
			}
		}
		callTool(t, session, "update_story", story+`,"stage":"2_current"}`)
	}
	callTool(t, overHTTP, "release_story", `{"project":"alpha","story_id":"7_pay"}`)
	if list, _ := json.Marshal(callTool(t, overHTTP, "list_stories", `{"project":"alpha"}`)); !strings.Contains(string(list), `"7_pay"`) || strings.Contains(string(list), `"claim":`) {
		t.Errorf("the list: %s", list)
	}
	s.assign(agent.ID, "beta")
	if _, err := overHTTP.CallTool(t.Context(), &sdk.CallToolParams{Name: "overview"}); err == nil {
		t.Error("the token outlives the assignment")
	}
	if _, audit := s.do(t, "GET", "/api/gateway/audit", ""); strings.Contains(audit, token) || !strings.Contains(audit, `"who":"agent local","via":"token","role":"viewer","action":"story.changed"`) {
		t.Errorf("the audit: %s", audit)
	}
}

// withToken sends each request with a token.
type withToken string

func (token withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(token))
	return http.DefaultTransport.RoundTrip(r)
}

func withEnv(cmd *exec.Cmd, variables ...string) *exec.Cmd {
	cmd.Env = append(cmd.Env, variables...)
	return cmd
}

// TestThePipeSaysWhatIsWrong: errors are one line on stderr, exit status 1, and a response to the client.
func TestThePipeSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := start(t, withEnv(switchyard(t, dir, "gateway", "--listen=localhost:0", "--data=DIR/data", "--bot-config=DIR/bot.toml", "--credentials=DIR/credentials.json"),
		"SWITCHYARD_ADMIN_TOKEN=a-token-of-the-administrator"))
	const message = `{"jsonrpc":"2.0","id":7,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}` + "\n"
	odd := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/page/mcp" {
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, "\x1b[31mred")
			return
		}
		http.Error(w, "\x1b[31mno", http.StatusBadRequest)
	}))
	defer odd.Close()
	for name, c := range map[string]struct {
		gateway, token, input, want string
		status                      int
		answered                    bool
	}{
		"no JSON":       {"http://127.0.0.1:1", "", `{"id":7,` + "\n", "", 0, false},
		"JSON and more": {"http://127.0.0.1:1", "", `{"id":7} {}` + "\n", "", 0, false},
		"refusal":       {odd.URL, "", message, "", 0, true},
		"a page":        {odd.URL + "/page", "", message, `is it a gateway? "\x1b[31mred"`, 1, true},
		"no token":      {p.url, "", message, "requires a token: set SWITCHYARD_API_TOKEN", 1, true},
		"wrong token":   {p.url, "wrong", message, "refuses the token in SWITCHYARD_API_TOKEN", 1, true},
		"away":          {"http://127.0.0.1:1", "", message, "does not answer: connection refused", 1, true},
		"long message":  {p.url, "", strings.Repeat("x", 1<<20+100), "a message is longer than 1048576 bytes", 1, false},
		"not a gateway": {p.url + "/healthz", "a-token-of-the-administrator", message, "is it a gateway?", 1, true},
		"no address":    {"yard:3000", "", message, "--gateway must be an address", 2, false},
		"odd token":     {p.url, "a b", message, "SWITCHYARD_API_TOKEN must be", 2, false},
		"nothing":       {p.url, "", "", "", 0, false},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var stdout, stderr strings.Builder
		prepared := withEnv(switchyard(t, dir, "mcp", "--gateway="+c.gateway), "SWITCHYARD_API_TOKEN="+c.token)
		cmd := exec.CommandContext(ctx, prepared.Path, prepared.Args[1:]...)
		cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = prepared.Env, strings.NewReader(c.input), &stdout, &stderr
		_ = cmd.Run()
		if status := cmd.ProcessState.ExitCode(); status != c.status || !strings.Contains(stderr.String(), c.want) || strings.Count(stderr.String(), "\n") > 1 {
			t.Errorf("%s: exit status %d, stderr %q", name, status, &stderr)
		}
		var answer struct {
			ID    *int
			Error struct {
				Code    int
				Message string
			}
		}
		_ = json.Unmarshal([]byte(stdout.String()), &answer)
		if answered := answer.ID != nil && *answer.ID == 7 && strings.Contains(answer.Error.Message, c.want); answered != c.answered {
			t.Errorf("%s: stdout %q", name, &stdout)
		}
		if strings.Contains(name, "JSON") && answer.Error.Code != -32700 {
			t.Errorf("%s: stdout %q", name, &stdout)
		}
		if name == "refusal" && !strings.HasSuffix(answer.Error.Message, `answers with HTTP status 400: "\x1b[31mno"`) {
			t.Errorf("%s: stdout %q", name, &stdout)
		}
	}
}

// TestThePipePassesStreamsOn: each event's message is a line.
func TestThePipePassesStreamsOn(t *testing.T) {
	const progress, result = `{"jsonrpc":"2.0","method":"notifications/progress"}`, `{"jsonrpc":"2.0","id":1,"result":{}}`
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "event: message\ndata: %s\n\nevent: message\r\ndata: %s\r\n\r\n", progress, result)
	}))
	defer gateway.Close()
	var stdout strings.Builder
	err := newMCPPipe(gateway.URL, "", &stdout).run(t.Context(), strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`))
	if err != nil || stdout.String() != progress+"\n"+result+"\n" {
		t.Errorf("%v, %s", err, &stdout)
	}
}
