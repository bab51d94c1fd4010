package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"switchyard/internal/domain"
	"switchyard/internal/waittest"
)

// model answers a coding agent's requests by a script: it wants to run a command, or to use another tool, so often.
type model struct {
	*httptest.Server
	tries int
	tool  string        // of Claude Code, "" to run the command
	input string        // of that
	again chan struct{} // closed when it may try for the second time
	// atOnce makes it use the tool once in each conversation, after so many have begun.
	atOnce int

	mu      sync.Mutex
	begun   int // conversations
	tried   int
	results []string // of the tool, as the agent reported them
}

const touched = "made-by-agent.txt"

func newModel(t *testing.T, tries int) *model {
	t.Helper()
	m := &model{tries: tries, again: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/messages", m.messages)
	mux.HandleFunc("POST /v1/responses", m.responses)
	m.Server = httptest.NewServer(mux)
	t.Cleanup(m.Close)
	return m
}

// next returns what the model does next, given what it was told of its tool: whether it uses that, and how often then.
func (m *model) next(results []string) (uses bool, try int) {
	if m.atOnce > 0 {
		return m.begin(results), 1
	}
	m.mu.Lock()
	m.results = results
	m.tried++
	try = m.tried
	m.mu.Unlock()
	if try > 1 && try <= m.tries {
		<-m.again
	}
	return try <= m.tries, try
}

// begin reports whether a conversation begins, once enough have.
func (m *model) begin(results []string) bool {
	if len(results) > 0 {
		return false
	}
	m.mu.Lock()
	if m.begun++; m.begun == m.atOnce {
		close(m.again)
	}
	m.mu.Unlock()
	<-m.again
	return true
}

// streamed writes events as both APIs do.
func streamed(w http.ResponseWriter) func(kind, text string) {
	w.Header().Set("Content-Type", "text/event-stream")
	return func(kind, text string) { fmt.Fprintf(w, "event: %s\ndata: {\"type\":%q,%s}\n\n", kind, kind, text) }
}

// messages is the API that Claude Code uses.
func (m *model) messages(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Model    string
		Tools    []struct{ Name string }
		Messages []struct{ Content json.RawMessage }
	}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var results []string
	for _, message := range asked.Messages {
		var parts []struct {
			Type    string
			Content json.RawMessage
		}
		_ = json.Unmarshal(message.Content, &parts) // or it is a text
		for _, part := range parts {
			if part.Type == "tool_result" {
				results = append(results, string(part.Content))
			}
		}
	}
	// On a busy machine Claude Code begins without its MCP servers, and refuses all that needs them: a model tries again.
	uses := len(results) > 0 && strings.Contains(results[len(results)-1], "permission-prompt-tool) not found")
	if !uses && len(asked.Tools) > 0 {
		uses, _ = m.next(results)
	}
	begun, delta, stop := `{"type":"text","text":""}`, `{"type":"text_delta","text":"Done."}`, "end_turn"
	if uses {
		tool, input := "Bash", fmt.Sprintf(`{"command":"touch %s","description":"Make a file"}`, touched)
		if m.tool != "" {
			tool, input = m.tool, m.input
		}
		begun = fmt.Sprintf(`{"type":"tool_use","id":"toolu_01","name":%q,"input":{}}`, tool)
		delta, stop = fmt.Sprintf(`{"type":"input_json_delta","partial_json":%q}`, input), "tool_use"
	}
	event := streamed(w)
	event("message_start", fmt.Sprintf(`"message":{"id":"msg_1","type":"message","role":"assistant","model":%q,"content":[],"stop_reason":null,`+
		`"stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}`, asked.Model))
	event("content_block_start", `"index":0,"content_block":`+begun)
	event("content_block_delta", `"index":0,"delta":`+delta)
	event("content_block_stop", `"index":0`)
	event("message_delta", `"delta":{"stop_reason":"`+stop+`","stop_sequence":null},"usage":{"output_tokens":1}`)
	event("message_stop", `"x":0`)
}

// responses is the API that Codex uses.
func (m *model) responses(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Tools []struct{ Name string }
		Input []struct {
			Type   string
			Output json.RawMessage
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var results []string
	for _, item := range asked.Input {
		if item.Type == "function_call_output" {
			results = append(results, string(item.Output))
		}
	}
	item := `{"type":"message","role":"assistant","id":"msg_1","content":[{"type":"output_text","text":"Done."}]}`
	if len(asked.Tools) > 0 {
		if uses, try := m.next(results); uses {
			input := fmt.Sprintf(`{"cmd":"touch %s","sandbox_permissions":"require_escalated","justification":"Make a file"}`, touched)
			item = fmt.Sprintf(`{"type":"function_call","id":"fc_%d","call_id":"call_%[1]d","name":"exec_command","arguments":%q}`, try, input)
			if m.tool != "" { // of an MCP server
				item = fmt.Sprintf(`{"type":"function_call","id":"fc_1","call_id":"call_1","namespace":"mcp__switchyard","name":%q,"arguments":%q}`, m.tool, m.input)
			}
		}
	}
	event := streamed(w)
	event("response.created", `"response":{"id":"resp_1"}`)
	event("response.output_item.done", `"item":`+item)
	event("response.completed", `"response":{"id":"resp_1","usage":{"input_tokens":1,"output_tokens":1,"total_tokens":2}}`)
}

// told returns what the model was told about its tool.
func (m *model) told() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return strings.Join(m.results, "\n")
}

// codingAgent returns a program that npm has installed for the tests.
func codingAgent(t *testing.T, name string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("runs a coding agent")
	}
	path, err := filepath.Abs(filepath.Join("../../internal/codingagents/node_modules/.bin", name))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		waittest.Missing(t, err)
	}
	return path
}

// codingSite is a gateway, and a coding agent that an agent runs there, in a directory of its own.
type codingSite struct {
	*site
	model *model
	work  string
}

// newCodingSite runs a line of shell as the agent's command, which npm has installed as name. CODER in it is its path, "$@" are the flags
// that it gets here. uses is the tool that its model uses, and the input.
func newCodingSite(t *testing.T, s *site, name string, tries int, line string, uses ...string) *codingSite {
	t.Helper()
	c := &codingSite{site: s, model: newModel(t, tries), work: filepath.Join(s.dir, "repository")}
	if len(uses) > 0 {
		c.model.tool, c.model.input = uses[0], uses[1]
	}
	command := filepath.Join(s.dir, "bin", name)
	for _, dir := range []string{c.work, filepath.Dir(command)} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	script := fmt.Sprintf("#!/bin/sh\ncd '%s'\n%s > '%s/said' 2>&1 < /dev/null\nexec sleep 1000\n", c.work, line, s.dir)
	if err := os.WriteFile(command, []byte(strings.ReplaceAll(script, "CODER", codingAgent(t, name))), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%s said: %s", name, c.said())
		}
		// In a terminal it outlives the agent by a moment, and writes there at its end.
		waittest.Until(t, "the coding agent's end", func() bool { return os.RemoveAll(filepath.Join(s.dir, "home")) == nil })
	})
	agent := launch(t, withEnv(switchyard(t, s.dir, "agent", "--gateway", s.url, "--label", "builder", "--token", s.token(), "--state", "DIR/state/agent.json", "--when-waiting=false", "--", command),
		"ANTHROPIC_BASE_URL="+c.model.URL, "ANTHROPIC_API_KEY=sk-ant-nobody", "MCP_TIMEOUT=90000", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1", "TERM=xterm",
		"MODEL_URL="+c.model.URL+"/v1"))
	agent.endWithCommand(t)
	s.assign(s.wait("joined", func(domain.Agent) bool { return true }).ID, "alpha")
	return c
}

// asked waits for the permission that the coding agent asks for.
func (c *codingSite) asked() (id string) {
	c.t.Helper()
	var open struct {
		Questions []struct {
			ID      string
			AskedBy string `json:"asked_by"`
			Tool    struct {
				Name  string
				Input struct{ Command string }
			}
		}
	}
	waittest.Until(c.t, "the coding agent asks", func() bool {
		_, text := c.do(c.t, "GET", questionsURL, "")
		return json.Unmarshal([]byte(text), &open) == nil && len(open.Questions) == 1
	})
	if q := open.Questions[0]; q.Tool.Name != "Bash" || q.Tool.Input.Command != "touch "+touched || q.AskedBy != "builder" {
		c.t.Errorf("asked: %+v", q)
	}
	return open.Questions[0].ID
}

func (c *codingSite) answer(id, value string) {
	c.t.Helper()
	if status, text := c.do(c.t, "POST", questionsURL+"/"+id+"/answer", fmt.Sprintf(`{"value":%q}`, value)); status != 200 {
		c.t.Fatalf("%d %s", status, text)
	}
}

func (c *codingSite) said() string {
	text, _ := os.ReadFile(filepath.Join(c.dir, "said"))
	return string(text)
}

func (c *codingSite) done() bool {
	_, err := os.Stat(filepath.Join(c.work, touched))
	return err == nil
}
