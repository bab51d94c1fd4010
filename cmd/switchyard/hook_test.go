package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"switchyard/internal/domain"
	"switchyard/internal/waittest"
)

// TestAClaudeOfAnAgentAsksTheConsole: an agent's command that is called claude gets the flags that make it ask here, and its
// hook is held until somebody answers. Nothing of that is in the user's home.
func TestAClaudeOfAnAgentAsksTheConsole(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	claude := filepath.Join(s.dir, "bin", "claude")
	script := `#!/bin/sh
printf '%s\n' "$@" > "` + s.dir + `/arguments"
hook=$(sed -n 's/.*"command": "\(.*\)",$/\1/p' "$7")
echo '{"hook_event_name":"PermissionRequest","session_id":"s","tool_name":"Bash","tool_input":{"command":"make"}}' |
	TEST_MAIN=1 sh -c "$hook" > "` + s.dir + `/decided.new" && mv "` + s.dir + `/decided.new" "` + s.dir + `/decided"
exec sleep 1000
`
	if err := os.MkdirAll(filepath.Dir(claude), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(claude, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	launch(t, switchyard(t, s.dir, "agent", "--gateway", s.url, "--label", "builder", "--token", s.token(), "--state", "DIR/state/agent.json",
		"--when-waiting=false", "--", claude, "-p"))
	agent := s.wait("joined", func(domain.Agent) bool { return true })
	s.assign(agent.ID, "alpha")
	var open struct {
		Questions []struct {
			ID      string
			AskedBy string `json:"asked_by"`
			Tool    struct{ Name string }
		}
	}
	waittest.Until(t, "the hook asks", func() bool {
		_, text := s.do(t, "GET", "/api/gateway/questions", "")
		return json.Unmarshal([]byte(text), &open) == nil && len(open.Questions) == 1
	})
	if q := open.Questions[0]; q.Tool.Name != "Bash" || q.AskedBy != "builder" {
		t.Errorf("asked: %+v", q)
	}
	if status, text := s.do(t, "POST", "/api/gateway/questions/"+open.Questions[0].ID+"/answer", `{"value":"allow"}`); status != 200 {
		t.Fatalf("%d %s", status, text)
	}
	waittest.Until(t, "the decision", func() bool {
		_, err := os.Stat(filepath.Join(s.dir, "decided"))
		return err == nil
	})
	decided, _ := os.ReadFile(filepath.Join(s.dir, "decided"))
	if want := `{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"allow"}}}`; strings.TrimSpace(string(decided)) != want {
		t.Errorf("decided %s", decided)
	}
	arguments, _ := os.ReadFile(filepath.Join(s.dir, "arguments"))
	want := strings.Join([]string{
		"-p", "--mcp-config", "DIR/state/claude-mcp.json", "--permission-prompt-tool", "mcp__switchyard__permission",
		"--settings", "DIR/state/claude-settings.json", "--allowedTools=mcp__switchyard__" + strings.Join([]string{
			"overview", "search", "list_stories", "get_story", "wait_for_events", "list_agents", "claim_story", "release_story", "update_story", "ask",
		}, ",mcp__switchyard__"), "",
	}, "\n")
	if string(arguments) != strings.ReplaceAll(want, "DIR", s.dir) {
		t.Errorf("arguments:\n%s", arguments)
	}
	for _, name := range []string{"claude-mcp.json", "claude-settings.json"} {
		text, err := os.ReadFile(filepath.Join(s.dir, "state", name))
		if info, _ := os.Stat(filepath.Join(s.dir, "state", name)); err != nil || info.Mode().Perm() != 0o600 || bytes.Contains(text, []byte("swk_")) {
			t.Errorf("%s: %v, %s", name, err, text)
		}
	}
	if entries, _ := filepath.Glob(filepath.Join(s.dir, "home", "*")); len(entries) > 0 {
		t.Errorf("the home has %v", entries)
	}
}

// TestAHookWithoutAGatewaySaysNothing on stdout, and fails.
func TestAHookWithoutAGatewaySaysNothing(t *testing.T) {
	t.Parallel()
	for _, env := range []string{"", "SWITCHYARD_GATEWAY_URL=http://127.0.0.1:1"} {
		cmd := withEnv(switchyard(t, t.TempDir(), "hook"), env)
		cmd.Stdin = strings.NewReader(`{"hook_event_name":"PermissionRequest"}`)
		if status, says := refused(t, cmd); status != 1 {
			t.Errorf("%q: %d %s", env, status, says)
		}
	}
}
