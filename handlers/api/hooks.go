package api

import (
	"encoding/json"
	"net/http"
	"slices"

	"switchyard/internal/domain"
	"switchyard/internal/web"
	"switchyard/internal/wire"
)

// editTools are the tools that need no permission in the mode acceptEdits.
var editTools = []string{"Edit", "MultiEdit", "NotebookEdit", "Write"}

// isAllowed reports whether a coding agent's own mode allows the use of a tool, so that nobody has to be asked.
func isAllowed(mode, tool string) bool {
	switch mode {
	case "bypassPermissions":
		return tool != domain.AskUserQuestion && tool != domain.ExitPlanMode
	case "acceptEdits":
		return slices.Contains(editTools, tool)
	}
	return false
}

// maxHookBody is for events of which little is read: a tool's input and output may come with them. A longer one is
// ignored over HTTP; switchyard hook sends no such thing.
const maxHookBody = 4 << 20

// ClaudeCodeHook notes what a coding agent's hook says about its session. It holds a PermissionRequest until people
// have answered, and answers in its format. It answers a Stop with the note with which the session's story was sent
// back. Other events, and what its own mode allows, get an empty answer.
func (a *API) ClaudeCodeHook(w http.ResponseWriter, r *http.Request) error {
	b := web.DecodeJSON(w, r, maxHookBody)
	asks := b.Text("hook_event_name") == domain.PermissionRequest
	if err := b.Err(); err != nil {
		return err
	}
	event, err := wire.HookOf(b.Fields)
	switch {
	case asks && err != nil:
		return err
	case err == nil: // otherwise it names no session to tell anything
		note, heard := a.service.Reviews.AtStop(r.Context(), event)
		a.service.Sessions.Receive(r.Context(), heard)
		if note != "" {
			return answer(w, http.StatusOK, map[string]string{"decision": "block", "reason": note}, nil)
		}
	}
	if !asks || isAllowed(event.Mode, event.Tool) {
		w.WriteHeader(http.StatusOK)
		return nil
	}
	held, release, err := a.held.Hold(r)
	if err != nil {
		return err
	}
	defer release()
	use := domain.ToolUse{Name: event.Tool, CWD: wire.OrNull(domain.CutText(event.CWD))}
	use.Input, _ = b.Raw("tool_input")
	decision, err := a.service.Questions.Permission(r.Context(), held, use, event.UseID, event.Session)
	if err != nil {
		return err
	}
	type decided struct {
		Behavior string          `json:"behavior"`
		Message  string          `json:"message,omitempty"`
		Input    json.RawMessage `json:"updatedInput,omitempty"`
	}
	type output struct {
		Event    string  `json:"hookEventName"`
		Decision decided `json:"decision"`
	}
	d := decided{Behavior: domain.Deny, Message: decision.Message}
	if decision.Allowed {
		d.Behavior = domain.Allow
	}
	if decision.Answered { // Codex takes any other input as a refusal
		d.Input = decision.Input
	}
	return answer(w, http.StatusOK, map[string]any{"hookSpecificOutput": output{domain.PermissionRequest, d}}, nil)
}
