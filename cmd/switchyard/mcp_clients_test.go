package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"switchyard/internal/waittest"
)

// documentedClient returns what docs/mcp.md says a client's configuration is, for this gateway.
func documentedClient(t *testing.T, client string, s *site) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/mcp.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("(?s)\n" + client + " \\([^\n]*\n\n```[a-z]+\n(.*?)```").FindSubmatch(text)
	if found == nil {
		t.Fatalf("docs/mcp.md does not say how %s connects", client)
	}
	return strings.ReplaceAll(string(found[1]), "http://yard:3000", s.url)
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestCodexExecUsesToolsThatChange something, configured as the documents say: it can ask nobody, and refuses what it takes for dangerous.
func TestCodexExecUsesToolsThatChange(t *testing.T) {
	t.Parallel()
	for name, without := range map[string]string{"as documented": "", "by our tools' word alone": "default_tools_approval_mode"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			config := documentedClient(t, "Codex", s)
			if without != "" {
				config = regexp.MustCompile("(?m)^"+without+".*$").ReplaceAllString(config, "")
			}
			writeFile(t, filepath.Join(s.dir, "home", ".codex", "config.toml"), "model = 'gpt'\nmodel_provider = 'script'\n"+
				"[model_providers.script]\nname = 'script'\nbase_url = 'MODEL_URL'\nwire_api = 'responses'\n"+config)
			c := newCodingSite(t, s, "codex", 1, `sed -i "s|MODEL_URL|$MODEL_URL|" "$HOME/.codex/config.toml"; `+
				`OPENAI_API_KEY=nobody; export OPENAI_API_KEY; CODER exec --skip-git-repo-check 'ask'`, "ask", `{"prompt":"Which table?","wait":"1ms"}`)
			waittest.Until(t, "the model is told", func() bool { return c.model.told() != "" })
			if asked := c.open(t); len(asked) != 1 {
				t.Errorf("asked: %+v; the model was told: %s", asked, c.model.told())
			}
		})
	}
}

// TestClientsConnectAsDocumented: Gemini CLI and opencode find our server, with its token.
func TestClientsConnectAsDocumented(t *testing.T) {
	t.Parallel()
	for client, at := range map[string]struct{ program, file string }{
		"Gemini CLI": {"gemini", ".gemini/settings.json"}, "opencode": {"opencode", ".config/opencode/opencode.json"},
	} {
		t.Run(client, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			home := filepath.Join(s.dir, "home")
			writeFile(t, filepath.Join(home, at.file), documentedClient(t, client, s))
			program := codingAgent(t, at.program)
			cmd := exec.CommandContext(t.Context(), program, "mcp", "list")
			cmd.Dir = t.TempDir()
			cmd.Env = []string{
				"HOME=" + home, "PATH=" + filepath.Dir(program) + ":" + os.Getenv("PATH"), // with its Node, where it has one
				"GEMINI_CLI_TRUST_WORKSPACE=true", fmt.Sprintf("SWITCHYARD_API_TOKEN=%s", s.bearer),
			}
			if said, err := cmd.CombinedOutput(); err != nil || !regexp.MustCompile("(?i)switchyard.*connected").Match(said) {
				t.Errorf("%v: %s", err, said)
			}
		})
	}
}
