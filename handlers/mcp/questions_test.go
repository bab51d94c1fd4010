package mcp_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"switchyard/internal/domain"
	"switchyard/internal/waittest"
)

// TestPermissionAnswersAsClaudeCodeReadsIt: an allow has the input back, a deny says why.
func TestPermissionAnswersAsClaudeCodeReadsIt(t *testing.T) {
	s := newMCPSite(t)
	call := func(name string, arguments any) <-chan string {
		done := make(chan string, 1)
		go func() {
			params := &sdk.CallToolParams{Name: name, Arguments: arguments}
			params.SetProgressToken(name) // as Claude Code does
			result, err := s.session.CallTool(t.Context(), params)
			if err != nil {
				done <- err.Error()
				return
			}
			text, _ := result.Content[0].(*sdk.TextContent)
			done <- text.Text
		}()
		return done
	}
	open := func() domain.Question {
		waittest.Until(t, "a question", func() bool { return s.Questions.Open() > 0 })
		recent := s.Questions.Recent()
		return recent[len(recent)-1]
	}
	actor := domain.Administrator(domain.ViaOpen)
	answer := func(q domain.Question, value, text string) {
		t.Helper()
		if _, err := s.Questions.Answer(domain.WithActor(t.Context(), &actor), q.ID, domain.Answer{Value: value, Text: text}); err != nil {
			t.Fatal(err)
		}
	}
	input := map[string]any{"command": "touch x", "n": json.Number("12345678901234567890")}
	done := call("permission", map[string]any{"tool_name": "Bash", "input": input, "tool_use_id": "t1"})
	again := call("permission", map[string]any{"tool_name": "Bash", "input": input, "tool_use_id": "t1"})
	s.AwaitHeld(2)
	answer(open(), "allow", "")
	for _, done := range []<-chan string{done, again} {
		if got := <-done; !strings.Contains(got, `"behavior":"allow"`) || !strings.Contains(got, `"command":"touch x"`) || !strings.Contains(got, "12345678901234567890") {
			t.Errorf("allowed: %s", got)
		}
	}
	done = call("permission", map[string]any{"tool_name": "Bash", "input": input})
	answer(open(), "deny", "use the other one")
	if got := <-done; got != `{"behavior":"deny","message":"use the other one"}` {
		t.Errorf("denied: %s", got)
	}
	if got := <-call("ask", map[string]any{"prompt": "Which?", "options": []string{"a", "b"}, "wait": "1ms"}); !strings.Contains(got, `"state":"open"`) {
		t.Errorf("asked: %s", got)
	}
	q := open()
	done = call("ask", map[string]any{"id": strconv.FormatInt(q.ID, 10)})
	answer(q, "b", "")
	if got := <-done; !strings.Contains(got, `"value":"b"`) || !strings.Contains(got, `"state":"answered"`) {
		t.Errorf("answered: %s", got)
	}
}

// TestAnIDIsThatOfOneQuestion: what was shown is allowed, not what the same id is used for later.
func TestAnIDIsThatOfOneQuestion(t *testing.T) {
	s := newMCPSite(t)
	call := func(tool, command string) <-chan string {
		done := make(chan string, 1)
		arguments := fmt.Sprintf(`{"tool_name":%q,"input":{"command":%q},"tool_use_id":"t1"}`, tool, command)
		go func() {
			text, _ := s.call("permission", arguments)
			done <- text
		}()
		return done
	}
	first := call("Bash", "ls")
	waittest.Until(t, "the question", func() bool { return s.Questions.Open() == 1 })
	if got := <-call("Write", "ls"); !strings.Contains(got, "another question") {
		t.Errorf("another tool: %s", got)
	}
	again := call("Bash", "rm -r /")
	s.AwaitHeld(2)
	asked := s.Questions.Recent()
	if len(asked) != 1 {
		t.Fatalf("asked: %+v", asked)
	}
	actor := domain.Administrator(domain.ViaOpen)
	if _, err := s.Questions.Answer(domain.WithActor(t.Context(), &actor), asked[0].ID, domain.Answer{Value: domain.Allow}); err != nil {
		t.Fatal(err)
	}
	for _, done := range []<-chan string{first, again} {
		if got := <-done; got != `{"behavior":"allow","updatedInput":{"command":"ls"}}` {
			t.Errorf("allowed: %s", got)
		}
	}
}
