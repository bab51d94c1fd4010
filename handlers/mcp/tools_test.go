package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"switchyard/handlers"
	"switchyard/internal/gatewaytest"
	"switchyard/internal/service"
	"switchyard/internal/upstream"
	"switchyard/internal/waittest"
)

// newToolSite returns a gateway with one project whose tools may take limit; other calls may take a second.
func newToolSite(t *testing.T, limit time.Duration, own http.Handler) mcpSite {
	client := upstream.NewClient(time.Second)
	client.ToolTimeout = limit
	t.Cleanup(client.Close)
	g := gatewaytest.New(t, service.Options{Projects: client, Stories: client, Tools: client}, handlers.Gateway{})
	s := mcpSite{g.Site(t), nil}
	s.session = connectMCP(t, s.URL, newestMCP, nil)
	s.Add("alpha", gatewaytest.ProjectServer(t, gatewaytest.Says(gatewaytest.BoardText), func(mux *http.ServeMux) { mux.Handle("/mcp", own) }))
	return s
}

// toolServer is an MCP server with one tool, t.
func toolServer(run func(ctx context.Context, call *sdk.CallToolRequest)) http.Handler {
	own := sdk.NewServer(&sdk.Implementation{Name: "own", Version: "1"}, nil)
	sdk.AddTool(own, &sdk.Tool{Name: "t"}, func(ctx context.Context, call *sdk.CallToolRequest, _ struct{}) (*sdk.CallToolResult, any, error) {
		run(ctx, call)
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "done"}}}, nil, nil
	})
	return sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return own }, nil)
}

const callTool = `{"project":"alpha","tool":"t","arguments":{}}`

// TestMCPToolThatTimesOutMayHaveRun: an agent must not be told to call it again.
func TestMCPToolThatTimesOutMayHaveRun(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	hang := toolServer(func(context.Context, *sdk.CallToolRequest) { <-release })
	s := newToolSite(t, 100*time.Millisecond, hang)
	text, isError := s.call("call_project_tool", callTool)
	if !isError || !strings.Contains(text, "no complete answer within 100ms. It may have run") || strings.Contains(text, "ry again") {
		t.Errorf("%v %s", isError, text)
	}
	audit := s.Send("GET", "/api/gateway/audit", "")
	if !strings.Contains(audit.Text, "tool: t") {
		t.Errorf("the audit has no entry: %s", audit.Text)
	}
}

func TestMCPPassesOnTheProgressOfAProjectsTool(t *testing.T) {
	goOn := make(chan struct{})
	s := newToolSite(t, time.Minute, toolServer(func(ctx context.Context, call *sdk.CallToolRequest) {
		for n := range 2 {
			progress := &sdk.ProgressNotificationParams{
				ProgressToken: call.Params.GetProgressToken(), Progress: float64(n), Message: fmt.Sprint("step ", n),
			}
			if err := call.Session.NotifyProgress(ctx, progress); err != nil {
				t.Error(err)
			}
			<-goOn // each is passed on before the tool ends
		}
	}))
	for _, version := range []string{newestMCP, "2025-06-18", oldestMCP} {
		var steps []string
		options := &sdk.ClientOptions{ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
			steps = append(steps, fmt.Sprint(r.Params.ProgressToken, " ", r.Params.Message))
			goOn <- struct{}{}
		}}
		transport := &sdk.StreamableClientTransport{Endpoint: s.URL + "/mcp"}
		session, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, options).
			Connect(t.Context(), transport, &sdk.ClientSessionOptions{ProtocolVersion: version})
		if err != nil {
			t.Fatal(err)
		}
		params := &sdk.CallToolParams{Name: "call_project_tool", Arguments: json.RawMessage(callTool)}
		params.SetProgressToken("mine")
		result, err := session.CallTool(t.Context(), params)
		if err != nil || result.IsError || fmt.Sprint(steps) != "[mine step 0 mine step 1]" {
			t.Errorf("%s: %v, %v, progress %q", version, result, err, steps)
		}
		session.Close()
	}
}

// TestMCPStreamOfAProjectNeedNotEnd: the answer is in it, and that is enough.
func TestMCPStreamOfAProjectNeedNotEnd(t *testing.T) {
	s := newToolSite(t, time.Minute, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var message struct {
			ID     int
			Method string
		}
		_ = json.NewDecoder(r.Body).Decode(&message)
		w.Header().Set("Content-Type", "text/event-stream")
		result := map[string]string{"initialize": `{"protocolVersion":"2025-06-18"}`, "tools/call": `{"content":[]}`}[message.Method]
		fmt.Fprintf(w, "event: message\r\ndata: {\"jsonrpc\":\"2.0\",\"id\":%d,\r\ndata: \"result\":%s}\r\n\r\n", message.ID, result)
		if message.Method == "tools/call" {
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}
	}))
	answer := s.post(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"call_project_tool","arguments":` + callTool + `}}`)
	if !strings.Contains(answer, `"result":{"content":[]}`) {
		t.Error(answer)
	}
}

func TestMCPUnknownMethodsAreNotFound(t *testing.T) {
	s := newMCPSite(t)
	const unknown = `{"code":-32601,`
	for _, version := range []string{"", oldestMCP, "2025-03-26", "2025-06-18", "2025-11-25", newestMCP} {
		meta := `{"uri":"a:b"}`
		if version == newestMCP {
			meta = `{"uri":"a:b","_meta":{"io.modelcontextprotocol/protocolVersion":"` + version + `","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},` +
				`"io.modelcontextprotocol/clientCapabilities":{}}}`
		}
		for _, method := range []string{"foo/bar", "completion/complete", "logging/setLevel", "subscriptions/listen", "resources/subscribe"} {
			status, answer := s.exchange(version, method, `{"jsonrpc":"2.0","id":"x 7","method":"`+method+`","params":`+meta+`}`)
			if status != 200 && (version != newestMCP || status != 404) || !strings.Contains(answer, unknown) || !strings.Contains(answer, `"id":"x 7"`) || !strings.Contains(answer, `\"`+method+`\"`) {
				t.Errorf("%s %s: %d %s", version, method, status, answer)
			}
		}
		status, answer := s.exchange(version, "foo/bar", `{"jsonrpc":"2.0","method":"foo/bar"}`)
		if status != 202 || answer != "" {
			t.Errorf("%s notification: %d %s", version, status, answer)
		}
	}
	status, answer := s.exchange(oldestMCP, "", `[{"jsonrpc":"2.0","id":1,"method":"foo"},{"jsonrpc":"2.0","method":"bar"},{"jsonrpc":"2.0","id":2,"method":"ping"}]`)
	if status != 200 || strings.Count(answer, unknown) != 1 || strings.Count(answer, `"result":{}`) != 1 {
		t.Errorf("batch: %d %s", status, answer)
	}
	if status, answer := s.exchange(oldestMCP, "ping", `{"jsonrpc":"2.0","id":1,"method":"ping"} {}`); status != 400 {
		t.Errorf("with something after it: %d %s", status, answer)
	}
}

// exchange posts a body as a client of that version does.
func (s mcpSite) exchange(version, method, body string) (status int, answer string) {
	s.Helper()
	request, err := http.NewRequest("POST", s.URL+"/mcp", bytes.NewReader([]byte(body)))
	if err != nil {
		s.Fatal(err)
	}
	request.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	if version != "" {
		request.Header.Set("Mcp-Protocol-Version", version)
	}
	if version == newestMCP {
		request.Header.Set("Mcp-Method", method)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		s.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		s.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// TestACallThatItsClientLeavesIsNoFault of the gateway's, which its log would show.
func TestACallThatItsClientLeavesIsNoFault(t *testing.T) {
	called, left := make(chan struct{}), make(chan struct{})
	var log waittest.Log
	client := upstream.NewClient(time.Minute)
	t.Cleanup(client.Close)
	g := gatewaytest.New(t, service.Options{
		Projects: client, Stories: client, Tools: client, Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}, handlers.Gateway{})
	server := g.Serve(t)
	project := gatewaytest.ProjectServer(t, gatewaytest.Says(gatewaytest.BoardText), func(mux *http.ServeMux) {
		mux.HandleFunc("/mcp", func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			close(called)
			<-r.Context().Done()
			close(left)
		})
	})
	if _, err := g.Projects.Add(t.Context(), "alpha", project, nil); err != nil {
		t.Fatal(err)
	}
	ctx, leave := context.WithCancel(t.Context())
	go func() { <-called; leave() }()
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"call_project_tool","arguments":` + callTool + `}}`
	request, err := http.NewRequestWithContext(ctx, "POST", server.URL+"/mcp", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, text/event-stream")
	if _, err := http.DefaultClient.Do(request); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	<-left
	server.Close() // it waits for the call
	if log.Count("level=ERROR") > 0 {
		t.Errorf("the log has\n%s", log.String())
	}
}
