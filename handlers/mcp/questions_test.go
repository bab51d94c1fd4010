package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

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
		if _, err := s.Questions.Answer(domain.WithActor(t.Context(), &actor), q.ID, value, text); err != nil {
			t.Fatal(err)
		}
	}
	input := map[string]any{"command": "touch x", "n": json.Number("12345678901234567890")}
	done := call("permission", map[string]any{"tool_name": "Bash", "input": input, "tool_use_id": "t1"})
	again := call("permission", map[string]any{"tool_name": "Bash", "input": input, "tool_use_id": "t1"})
	answer(open(), "allow", "")
	for _, done := range []<-chan string{done, again} {
		got := ""
		for tick := time.Tick(50 * time.Millisecond); got == ""; {
			select {
			case got = <-done:
			case <-tick: // a call that came after the answer asks again
				if s.Questions.Open() > 0 {
					answer(open(), "allow", "")
				}
			}
		}
		if !strings.Contains(got, `"behavior":"allow"`) || !strings.Contains(got, `"command":"touch x"`) || !strings.Contains(got, "12345678901234567890") {
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
	waittest.Until(t, "both are held", func() bool {
		stacks := make([]byte, 1<<20)
		return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), "service.(*Questions).Wait(") == 2
	})
	asked := s.Questions.Recent()
	if len(asked) != 1 {
		t.Fatalf("asked: %+v", asked)
	}
	actor := domain.Administrator(domain.ViaOpen)
	if _, err := s.Questions.Answer(domain.WithActor(t.Context(), &actor), asked[0].ID, domain.Allow, ""); err != nil {
		t.Fatal(err)
	}
	for _, done := range []<-chan string{first, again} {
		if got := <-done; got != `{"behavior":"allow","updatedInput":{"command":"ls"}}` {
			t.Errorf("allowed: %s", got)
		}
	}
}

// TestAClientThatGoesWithdrawsItsOwnQuestion, and nobody else's that it waits for.
func TestAClientThatGoesWithdrawsItsOwnQuestion(t *testing.T) {
	s := newMCPSite(t)
	state := func(id int64) domain.QuestionState {
		q, err := s.Questions.Get(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		return q.State
	}
	// goes sends a call, and closes the connection while it is held.
	goes := func(tool, arguments string, held func() bool) {
		t.Helper()
		ctx, leave := context.WithCancel(t.Context())
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, tool, arguments)
		request, err := http.NewRequestWithContext(ctx, "POST", s.URL+"/mcp", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			if response, err := http.DefaultTransport.RoundTrip(request); err == nil {
				_, _ = io.Copy(io.Discard, response.Body)
				response.Body.Close()
			}
		}()
		waittest.Until(t, tool+" is held", held)
		leave()
		<-gone
		waittest.Until(t, tool+" has ended", func() bool {
			return strings.Contains(s.Get("/metrics").Text, "switchyard_http_requests_in_flight 1\n")
		})
	}
	for tool, arguments := range map[string]string{
		"permission": `{"tool_name":"Bash","input":{}}`, "ask": `{"prompt":"Which?"}`,
	} {
		goes(tool, arguments, func() bool { return s.Questions.Open() == 1 })
		if recent := s.Questions.Recent(); recent[len(recent)-1].State != domain.QuestionWithdrawn {
			t.Errorf("%s: %s", tool, recent[len(recent)-1].State)
		}
	}
	zoe := domain.Actor{Who: "zoe", Account: "token z", Role: domain.RoleOperator}
	q, err := s.Questions.Ask(domain.WithActor(t.Context(), &zoe), domain.Question{Kind: domain.QuestionText, Prompt: "x"}, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, wait := range []string{"", `,"wait":"40s"`} {
		goes("ask", fmt.Sprintf(`{"id":"%d"%s}`, q.ID, wait), func() bool {
			return strings.Contains(s.Get("/metrics").Text, "switchyard_http_requests_in_flight 2\n")
		})
		if got := state(q.ID); got != domain.QuestionOpen {
			t.Errorf("zoe's question is %s", got)
		}
	}
}
