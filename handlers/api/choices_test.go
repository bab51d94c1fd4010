package api_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"switchyard/internal/waittest"
)

const (
	whichDatabase = `{"question":"Which database?","header":"DB","options":[{"label":"SQLite","description":"one file"},{"label":"PostgreSQL","description":"a server"}],"multiSelect":false}`
	whichFeatures = `{"question":"Which features?","header":"Feat","options":[{"label":"A, first","description":"x"},{"label":"B","description":"y"},{"label":"C","description":"z"}],"multiSelect":true}`
)

// TestAgentsAskWithOptions by hook and over MCP; what people pick goes back as the coding agent reads it.
func TestAgentsAskWithOptions(t *testing.T) {
	s := newSite(t)
	// asks returns the question that is asked with these questions, and what the agent gets by both ways, once it is answered.
	asks := func(questions string) (q map[string]json.RawMessage, got func() [2]map[string]json.RawMessage) {
		t.Helper()
		input := `{"questions":[` + questions + `],"metadata":{"n":12345678901234567890}}`
		hook, mcp := make(chan string, 1), make(chan string, 1)
		go func() {
			hook <- s.Send("POST", "/api/hooks/claude-code", `{"hook_event_name":"PermissionRequest","permission_mode":"bypassPermissions","session_id":"s","tool_name":"AskUserQuestion","tool_input":`+input+`}`).Text
		}()
		go func() {
			mcp <- s.Send("POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"permission","arguments":{"tool_name":"AskUserQuestion","input":`+input+`,"tool_use_id":"t1"}}}`,
				"Accept", "application/json, text/event-stream").Text
		}()
		s.AwaitHeld(2)
		var list struct{ Questions []map[string]json.RawMessage }
		s.Get("/api/gateway/questions").Decode(t, &list)
		if len(list.Questions) != 1 {
			t.Fatalf("asked: %s", list.Questions)
		}
		return list.Questions[0], func() (both [2]map[string]json.RawMessage) {
			var byHook struct {
				Output struct {
					Decision struct {
						Behavior     string
						UpdatedInput map[string]json.RawMessage
					}
				} `json:"hookSpecificOutput"`
			}
			text := <-hook
			if err := json.Unmarshal([]byte(text), &byHook); err != nil || byHook.Output.Decision.Behavior != "allow" {
				t.Errorf("by hook: %s", text)
			}
			var called struct {
				Result struct{ Content []struct{ Text string } }
			}
			var byMCP struct {
				Behavior     string
				UpdatedInput map[string]json.RawMessage
			}
			text = strings.TrimSpace(<-mcp)
			text = text[strings.Index(text, "{"):]
			if err := json.Unmarshal([]byte(text), &called); err != nil || len(called.Result.Content) != 1 {
				t.Fatalf("by MCP: %s", text)
			}
			if err := json.Unmarshal([]byte(called.Result.Content[0].Text), &byMCP); err != nil || byMCP.Behavior != "allow" {
				t.Errorf("by MCP: %s", text)
			}
			both = [2]map[string]json.RawMessage{byHook.Output.Decision.UpdatedInput, byMCP.UpdatedInput}
			for _, got := range both {
				if string(got["questions"]) != "["+questions+"]" || string(got["metadata"]) != `{"n":12345678901234567890}` {
					t.Errorf("the input: %s", got)
				}
			}
			return both
		}
	}
	for _, test := range []struct{ questions, kind, options, answer, answers, value string }{
		{whichDatabase, "one", `["SQLite","PostgreSQL"]`, `{"answers":{"Which database?":"SQLite"}}`, `{"Which database?":"SQLite"}`, "SQLite"},
		{whichDatabase, "one", `["SQLite","PostgreSQL"]`, `{"value":"PostgreSQL"}`, `{"Which database?":"PostgreSQL"}`, "PostgreSQL"},
		{whichDatabase, "one", `["SQLite","PostgreSQL"]`, `{"value":"none, but files"}`, `{"Which database?":"none, but files"}`, "none, but files"},
		{whichFeatures, "several", `[]`, `{"answers":{"Which features?":["A, first","C","own words"]}}`, `{"Which features?":"\"A, first\", C, own words"}`, "A, first, C, own words"},
		{whichFeatures, "several", `[]`, `{"answers":{"Which features?":"B"}}`, `{"Which features?":"B"}`, "B"},
		{
			whichDatabase + "," + whichFeatures, "two", `[]`, `{"answers":{"Which database?":["SQLite"],"Which features?":"only mine"}}`,
			`{"Which database?":"SQLite","Which features?":"only mine"}`, "SQLite; only mine",
		},
	} {
		q, got := asks(test.questions)
		if string(q["kind"]) != `"choice"` || string(q["options"]) != test.options || string(q["tool"]) != "null" || !strings.HasPrefix(string(q["prompt"]), `"Which `) {
			t.Errorf("%s: %s", test.kind, q)
		}
		var asked []struct {
			Header, Prompt string
			Options        []struct{ Label, Description string }
			Multiple       bool
		}
		if err := json.Unmarshal(q["questions"], &asked); err != nil || len(asked) != strings.Count(test.questions, "header") || asked[0].Options[1].Description == "" ||
			asked[0].Multiple != strings.HasPrefix(test.questions, whichFeatures) {
			t.Errorf("%s: %s", test.kind, q["questions"])
		}
		var id string
		_ = json.Unmarshal(q["id"], &id)
		for _, bad := range []string{
			`{"answers":{}}`, `{"answers":{"Which?":"B"}}`, `{"answers":{"Which database?":["SQLite","PostgreSQL"]}}`, `{"answers":{"Which features?":[]}}`,
			`{"answers":{"Which features?":""}}`, `{"answers":["B"]}`, `{"answers":{"Which features?":7}}`, `{"answers":null}`, `{"value":" "}`, `{}`,
			`{"answers":{"Which database?":"SQLite","Which features?":"B","Why?":"x"}}`,
		} {
			if a := s.Send("POST", "/api/gateway/questions/"+id+"/answer", bad); a.StatusCode != 400 {
				t.Errorf("%s: %s: %d %s", test.kind, bad, a.StatusCode, a.Text)
			}
		}
		answered := s.Send("POST", "/api/gateway/questions/"+id+"/answer", test.answer).WantStatus(t, 200)
		var is struct {
			Answer struct {
				Value   string
				Answers map[string]json.RawMessage
			}
		}
		answered.Decode(t, &is)
		if is.Answer.Value != test.value || len(is.Answer.Answers) != len(asked) {
			t.Errorf("%s: answered: %s", test.kind, answered.Text)
		}
		if again := s.Get("/api/gateway/questions/" + id); again.Text != answered.Text {
			t.Errorf("%s: then: %s", test.kind, again.Text)
		}
		for _, got := range got() {
			if string(got["answers"]) != test.answers {
				t.Errorf("%s: the agent gets %s, want %s", test.answer, got["answers"], test.answers)
			}
		}
	}
	// What cannot be shown so is asked like any other tool.
	var asking sync.WaitGroup
	for i, input := range []string{`{}`, `{"questions":[]}`, `{"questions":[{"question":"x","options":[]}]}`, `{"questions":[` + whichDatabase + `,` + whichDatabase + `]}`, `{"questions":[{"question":"x","options":[{"label":" "}]}]}`} {
		asking.Go(func() {
			s.Send("POST", "/api/hooks/claude-code", `{"hook_event_name":"PermissionRequest","tool_name":"AskUserQuestion","tool_input":`+input+`}`)
		})
		waittest.Until(t, fmt.Sprintf("%s is asked", input), func() bool { return s.Questions.Open() == i+1 })
	}
	if list := s.Get("/api/gateway/questions").Text; strings.Count(list, `"kind":"permission"`) != 5 || strings.Count(list, `"questions":null`) != 5 {
		t.Errorf("asked: %s", list)
	}
	for _, q := range s.Questions.Recent() {
		s.Send("DELETE", fmt.Sprintf("/api/gateway/questions/%d", q.ID), "")
	}
	asking.Wait()
}
