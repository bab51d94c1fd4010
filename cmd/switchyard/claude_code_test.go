package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"switchyard/internal/pgtest"
	"switchyard/internal/waittest"
)

// claudeHold is how long a permission is held: longer than Claude Code waits for a call that tells nothing, which is a minute.
const claudeHold = 70 * time.Second

// inTerminal runs a command in a terminal of its own.
func inTerminal(command string) string {
	return `echo "stty cols 100 rows 40; exec ` + command + `" > ../start; script -qefc "sh ../start" /dev/null`
}

const headless = `CODER -p "make a file" "$@" --output-format stream-json --verbose`

// TestClaudeCodeWaitsForAPermission without a terminal, for longer than it would wait for a silent call, and in spite of a gateway that is
// killed: it is told in words, and what it asks again is the same question.
func TestClaudeCodeWaitsForAPermission(t *testing.T) {
	t.Parallel()
	c := newCodingSite(t, newSite(t), "claude", 2, headless)
	id := c.asked()
	c.killHard()
	waittest.Until(t, "the model is told that the call has failed", func() bool { return c.model.told() != "" })
	t.Logf("the model was told: %s", c.model.told())
	c.again()
	close(c.model.again)
	if again := c.asked(); again != id {
		t.Errorf("question %s became %s", id, again)
	}
	c.holds(t, 1)
	began := time.Now()
	waittest.Until(t, "the end of Claude Code's patience", func() bool { return time.Since(began) > claudeHold })
	if c.done() {
		t.Error("it has not waited")
	}
	c.answer(id, "allow")
	waittest.Until(t, "the command", c.done)
	waittest.Until(t, "the end", func() bool { return strings.Contains(c.said(), `"result":"Done."`) })
	if said := c.said(); !strings.Contains(said, `"permission_denials":[`) {
		t.Errorf("said: %s", said)
	}
}

// TestClaudeCodeIsDeniedAtExpiry: nobody answers, the permission expires, and Claude Code goes on without.
func TestClaudeCodeIsDeniedAtExpiry(t *testing.T) {
	t.Parallel()
	codingAgent(t, "claude")
	database := pgtest.WrongClock(t, 0)
	c := newCodingSite(t, newSite(t, "--database="+database), "claude", 1, headless)
	c.asked()
	pgtest.SetClock(t, database, 2*time.Hour)
	waittest.Until(t, "the model is told", func() bool { return strings.Contains(c.model.told(), "Nobody allowed this: the question has expired.") })
	waittest.Until(t, "the end", func() bool { return strings.Contains(c.said(), `"result":"Done."`) })
	if said := c.said(); c.done() || !strings.Contains(said, `"permission_denials":[{"tool_name":"Bash"`) {
		t.Errorf("said: %s", said)
	}
}

// onboard writes what people have answered at Claude Code's first start.
func onboard(t *testing.T, s *site) {
	t.Helper()
	home := filepath.Join(s.dir, "home")
	if err := os.MkdirAll(home, 0o755); err != nil {
		t.Fatal(err)
	}
	settings := fmt.Sprintf(`{"hasCompletedOnboarding":true,"theme":"dark","customApiKeyResponses":{"approved":["sk-ant-nobody"],"rejected":[]},`+
		`"projects":{%q:{"hasTrustDialogAccepted":true}}}`, filepath.Join(s.dir, "repository"))
	if err := os.WriteFile(filepath.Join(home, ".claude.json"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestClaudeCodeInATerminalAsksByItsHook: its dialog is open meanwhile, and closes by itself.
func TestClaudeCodeInATerminalAsksByItsHook(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	onboard(t, s)
	c := newCodingSite(t, s, "claude", 1, inTerminal(`CODER 'make a file' $*`))
	id := c.asked()
	waittest.Until(t, "the dialog", func() bool { return strings.Contains(c.said(), "proceed?") })
	c.answer(id, "allow")
	waittest.Until(t, "the command", c.done)
	waittest.Until(t, "the end", func() bool { return strings.Contains(c.said(), "Done.") })
}

// TestTheModelGetsWhatPeoplePick of its questions, in Claude Code's own words: by MCP, by its hook, and by both.
func TestTheModelGetsWhatPeoplePick(t *testing.T) {
	const input = `{"questions":[{"question":"Which database?","header":"DB","options":[{"label":"SQLite, embedded","description":"one file"},{"label":"PostgreSQL","description":"a server"}],"multiSelect":false},` +
		`{"question":"Which features?","header":"Feat","options":[{"label":"A, first","description":"x"},{"label":"B","description":"y"},{"label":"C","description":"z"}],"multiSelect":true}]}`
	for way, line := range map[string]string{
		"both": headless,
		"mcp":  strings.Replace(headless, `"$@"`, `--mcp-config "$2" --permission-prompt-tool mcp__switchyard__permission`, 1),
		"hook": inTerminal(`CODER 'make a file' --settings $6`),
	} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			onboard(t, s)
			c := newCodingSite(t, s, "claude", 1, line, "AskUserQuestion", input)
			waittest.Until(t, "the coding agent asks", func() bool { return len(c.open(t)) == 1 })
			status, text := c.do(t, "POST", questionsURL+"/"+c.open(t)[0].ID+"/answer",
				`{"answers":{"Which database?":"SQLite, embedded","Which features?":["A, first","C","own words"]}}`)
			if status != 200 {
				t.Fatalf("%d %s", status, text)
			}
			waittest.Until(t, "the model is told", func() bool { return c.model.told() != "" })
			for _, part := range []string{"Which database?", "SQLite, embedded", "Which features?", "A, first", "C", "own words"} {
				if told := c.model.told(); !strings.Contains(told, part) {
					t.Errorf("%s is not in what the model was told: %s", part, told)
				}
			}
			waittest.Until(t, "the end", func() bool { return strings.Contains(c.said(), "Done.") })
		})
	}
}

// TestAPlanIsApprovedOrKept: the model gets what the plan lacks as it was written, and goes on once it is approved.
func TestAPlanIsApprovedOrKept(t *testing.T) {
	t.Parallel()
	c := newCodingSite(t, newSite(t), "claude", 2, strings.Replace(headless, "CODER", "CODER --permission-mode plan", 1), "ExitPlanMode", `{"plan":"# Mail\n\n1. Send it."}`)
	ask := func() string {
		waittest.Until(t, "the coding agent asks", func() bool { return len(c.open(t)) == 1 })
		return c.open(t)[0].ID
	}
	id := ask()
	if status, text := c.do(t, "POST", questionsURL+"/"+id+"/answer", `{"value":"deny","text":"no new table for that"}`); status != 200 {
		t.Fatalf("%d %s", status, text)
	}
	waittest.Until(t, "the model is told", func() bool { return strings.Contains(c.model.told(), "no new table for that") })
	close(c.model.again)
	c.answer(ask(), "allow")
	waittest.Until(t, "the end", func() bool { return strings.Contains(c.said(), `"result":"Done."`) })
}

// TestCodexAsksByItsHook, which has the same values: the model is told why it may not, and what is allowed runs.
func TestCodexAsksByItsHook(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	home := filepath.Join(s.dir, "home", ".codex")
	if err := os.MkdirAll(home, 0o755); err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf("model = 'gpt'\nmodel_provider = 'script'\napproval_policy = 'on-request'\nsandbox_mode = 'read-only'\n"+
		"[model_providers.script]\nname = 'script'\nbase_url = 'MODEL_URL'\nwire_api = 'responses'\n[projects.'%s/repository']\ntrust_level = 'trusted'\n", s.dir)
	hooks, err := switchyard(t, s.dir, "hook", "settings", "--client", "codex").Output()
	if err == nil {
		err = os.WriteFile(filepath.Join(home, "hooks.json"), hooks, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, "config.toml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	c := newCodingSite(t, s, "codex", 2, `sed -i "s|MODEL_URL|$MODEL_URL|" "$HOME/.codex/config.toml"; `+
		`OPENAI_API_KEY=nobody; export OPENAI_API_KEY; `+inTerminal(`CODER --dangerously-bypass-hook-trust 'make a file'`))
	id := c.asked()
	c.answer(id, "deny")
	waittest.Until(t, "the model is told", func() bool { return strings.Contains(c.model.told(), "Denied by admin.") })
	if c.done() {
		t.Error("it has not waited")
	}
	close(c.model.again)
	c.answer(c.asked(), "allow")
	waittest.Until(t, "the command", c.done)
	waittest.Until(t, "its session has stopped", func() bool {
		_, text := c.do(t, "GET", "/api/gateway/agent-sessions", "")
		return strings.Count(text, `"client":"codex"`) == 1 && strings.Contains(text, `"state":"idle"`) && strings.Contains(text, `"model":"gpt"`)
	})
}
