package domain_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"switchyard/internal/domain"
)

// TestASessionsStateFollowsItsEvents, by every rule: a step is an event, or m for a minute, h for an hour, ask and answer for a question.
func TestASessionsStateFollowsItsEvents(t *testing.T) {
	t.Parallel()
	for steps, want := range map[string]string{
		"SessionStart":                                      "idle 0m",
		"UserPromptSubmit":                                  "working 0m",
		"SessionStart m UserPromptSubmit":                   "working 1m",
		"UserPromptSubmit m PreToolUse:a:Bash":              "working 0m Bash 1m",
		"PreToolUse:a:Bash m PostToolUse:a":                 "working 0m",
		"PreToolUse:a:Bash m PostToolUseFailure:a":          "working 0m",
		"PreToolUse:a:Bash PreToolUse:b:Edit PostToolUse:a": "working 0m Edit 0m",
		"PreToolUse:a:Bash PreToolUse:b:Edit PostToolUse:b": "working 0m",
		"UserPromptSubmit m Stop":                           "idle 1m",
		"UserPromptSubmit m StopFailure":                    "idle 1m",
		"UserPromptSubmit PreToolUse:a:shell m Interrupt":   "idle 1m",
		"UserPromptSubmit m SubagentStop":                   "working 0m",
		"UserPromptSubmit Stop m PreToolUse:s:Bash":         "working 1m Bash 1m",
		"UserPromptSubmit Stop m SubagentStop":              "idle 0m",
		"UserPromptSubmit m SessionStart/compact":           "working 0m",
		// A notification that asks for input, until the next event.
		"PreToolUse:a:Bash m Notification=permission_prompt":                 "waiting 1m Bash 0m",
		"UserPromptSubmit m Notification=elicitation_url_dialog":             "waiting 1m",
		"PreToolUse:a:Bash m Notification=permission_prompt m PostToolUse:a": "working 2m",
		"UserPromptSubmit m Notification=permission_prompt m Stop":           "idle 2m",
		"UserPromptSubmit Stop m Notification=idle_prompt":                   "idle 0m",
		"UserPromptSubmit m Notification=auth_success":                       "working 0m",
		"UserPromptSubmit m Notification=elicitation_complete":               "working 0m",
		// A question, until it ends; the notification about the same goes with it.
		"PreToolUse:a:Bash m PermissionRequest ask m":                                       "waiting 1m Bash 0m",
		"PreToolUse:a:Bash PermissionRequest ask m Notification=permission_prompt m answer": "working 2m Bash 0m",
		"PreToolUse:a:Bash PermissionRequest ask m m m m m m m m m m m answer m":            "working 11m Bash 0m",
		// Nothing is heard.
		"UserPromptSubmit m m m m m m m m m":                        "working 0m",
		"PreToolUse:a:Bash m PreToolUse:b:Bash m m m m m m m m m m": "silent 1m Bash 1m",
		"UserPromptSubmit m m m m m m m m m m m PreToolUse:a:Bash":  "working 11m Bash 11m",
		"Stop m m m m m m m m m m m":                                "idle 0m",
		"UserPromptSubmit Notification=permission_prompt h":         "waiting 0m",
		"Stop d":                      "ended 1440m",
		"Stop d UserPromptSubmit":     "working 1440m",
		"UserPromptSubmit SessionEnd": "ended 0m",
		"UserPromptSubmit m SessionEnd m SubagentStop": "ended 1m",
		"SessionEnd m SessionStart":                    "idle 1m",
		"SessionEnd m UserPromptSubmit":                "working 1m",
		"PreToolUse:a:Bash SessionEnd d m":             "ended 0m gone",
		"Stop d d":                                     "ended 1440m gone",
	} {
		began := time.UnixMilli(1_800_000_000_000)
		now := began
		var s domain.AgentSession
		var asked *domain.Question
		for _, step := range strings.Fields(steps) {
			switch step {
			case "m":
				now = now.Add(time.Minute)
			case "h":
				now = now.Add(time.Hour)
			case "d":
				now = now.Add(24 * time.Hour)
			case "ask":
				asked = &domain.Question{ID: 7, AskedAt: now}
			case "answer":
				asked.Ended = now
				s, asked = s.Answered(*asked), nil
			default:
				e := domain.HookEvent{Session: "s"}
				step, e.Source, _ = strings.Cut(step, "/")
				step, e.Notification, _ = strings.Cut(step, "=")
				e.Name, e.UseID, _ = strings.Cut(step, ":")
				e.UseID, e.Tool, _ = strings.Cut(e.UseID, ":")
				known, says := e.Identify()
				if !says {
					t.Fatalf("%s says nothing", step)
				}
				s = s.After(known, now)
			}
		}
		is := s.At(now, asked)
		after := func(at time.Time) string { return fmt.Sprintf(" %.0fm", at.Sub(began).Minutes()) }
		got := string(is.State) + after(is.Since)
		if is.Tool != "" {
			got += " " + is.Tool + after(is.ToolSince)
		}
		if is.Gone(now) {
			got += " gone"
		}
		if got != want {
			t.Errorf("%s: %s, want %s", steps, got, want)
		}
		if (is.QuestionID != 0) != (asked != nil) {
			t.Errorf("%s: asks %d", steps, is.QuestionID)
		}
	}
}

// TestTheClientIsKnownByItsEvents, whichever of them comes first.
func TestTheClientIsKnownByItsEvents(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		e    domain.HookEvent
		want string
	}{
		{domain.HookEvent{}, "claude-code"},
		{domain.HookEvent{Turn: "t"}, "codex"},
		{domain.HookEvent{Transcript: "/home/dev/.codex/sessions/2026/11/28/rollout-2026.jsonl"}, "codex"},
		{domain.HookEvent{Client: "codex"}, "codex"},
		{domain.HookEvent{Client: "another"}, "claude-code"},
	} {
		test.e.Name, test.e.Session = "SessionStart", "s"
		e, says := test.e.Identify()
		if s := (domain.AgentSession{}).After(e, time.Now()); !says || s.Client != test.want || e.Turn+e.Transcript != "" {
			t.Errorf("%+v: %+v", test.e, s)
		}
	}
	for _, e := range []domain.HookEvent{{Name: "PostToolBatch", Session: "s"}, {Name: "Stop"}, {Name: "SubagentStart", Session: "s"}, {Session: "s"}} {
		if _, says := e.Identify(); says {
			t.Errorf("%+v says something of a session", e)
		}
	}
}
