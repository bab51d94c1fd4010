package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"switchyard/internal/domain"
	"switchyard/internal/waittest"
)

// writeToken writes a token file that belongs to its owner only.
func writeToken(t *testing.T, path, token string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestAnAgentReadsItsTokenFromAFile(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	path := filepath.Join(s.dir, "token")
	writeToken(t, path, s.token())
	p := s.run("--token-file", "DIR/token")
	agent := s.wait("joined", func(domain.Agent) bool { return true })
	p.stop(t, syscall.SIGTERM)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	p = s.run("--token-file", "DIR/token") // the identity is enough from now on
	s.wait("back", func(a domain.Agent) bool { return a.ID == agent.ID })
	p.stop(t, syscall.SIGTERM)

	for args, c := range map[string]struct {
		status int
		says   string
	}{
		"--token-file DIR/nosuch":           {1, s.dir + "/nosuch"},
		"--token-file DIR/data":             {1, "is a directory"},
		"--token-file DIR/empty":            {1, "holds no token"},
		"--token-file":                      {2, "--token-file"},
		"--token x --token-file DIR/nosuch": {2, "--token and --token-file"},
	} {
		writeToken(t, filepath.Join(s.dir, "empty"), "")
		cmd := switchyard(t, s.dir, append([]string{"agent", "--gateway", s.url, "--label", "other"}, strings.Fields(args)...)...)
		if status, says := exitOf(t, cmd); status != c.status || !strings.Contains(says, c.says) {
			t.Errorf("agent %s: status %d, %s; want %d, %s", args, status, says, c.status, c.says)
		}
	}
}

func TestAProjectServerReadsItsTokenFromAFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	stages(t, filepath.Join(dir, "work"), "1_story_login")
	writeToken(t, filepath.Join(dir, "token"), "s3cret")
	p := start(t, switchyard(t, dir, "project", "--name=alpha", "--work=DIR/work", "--listen=127.0.0.1:0", "--token-file=DIR/token"))
	for bearer, want := range map[string]int{"Bearer s3cret": 200, "Bearer other": 401} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.url+"/api/events", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", bearer)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("%s: %d, want %d", bearer, response.StatusCode, want)
		}
	}
	if status, says := refused(t, switchyard(t, dir, "project", "--name=alpha", "--work=DIR/work", "--token=x", "--token-file=DIR/token")); status != 2 || !strings.Contains(says, "--token and --token-file") {
		t.Errorf("both: %d, %s", status, says)
	}
}

// TestTheCommandCannotReadItsAgentsEnvironment: its own environment has none of the agent's secrets, and it cannot read the agent's.
// As root it could read everything, so the agent then runs without capabilities.
func TestTheCommandCannotReadItsAgentsEnvironment(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	const spy = `cat /proc/$PPID/environ > "$0.parent" 2> "$0.error"; env > "$0.own"; touch "$0.done"; sleep 1000`
	cmd := switchyard(t, s.dir, "agent", "--gateway", s.url, "--label", "builder-1", "--", "sh", "-c", spy, "DIR/spy")
	if os.Getuid() == 0 {
		setpriv := waittest.Program(t, "setpriv")
		cmd.Path, cmd.Args = setpriv, append([]string{"setpriv", "--bounding-set=-all", "--inh-caps=-all"}, cmd.Args...)
	}
	cmd.Env = append(cmd.Env, "SWITCHYARD_TOKEN="+s.token(), "SWITCHYARD_LOGIN_CLIENT_SECRET=canary", "SWITCHYARD_DATABASE=postgres://me:canary@db/",
		"SWITCHYARD_NOTIFICATIONS_SMTP_PASSWORD=canary", "SWITCHYARD_OF_TOMORROW=canary", "CI=true")
	p := launch(t, cmd)
	agent := s.wait("joined", func(domain.Agent) bool { return true })
	s.assign(agent.ID, "alpha")
	waittest.Until(t, "the command has looked", func() bool { _, err := os.Stat(filepath.Join(s.dir, "spy.done")); return err == nil })
	read := func(name string) string {
		data, err := os.ReadFile(filepath.Join(s.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	if parent, failure := read("spy.parent"), read("spy.error"); parent != "" || !strings.Contains(failure, "denied") && !strings.Contains(failure, "permitted") {
		t.Errorf("of its agent it read %q; %s", parent, failure)
	}
	own := read("spy.own")
	for _, secret := range []string{"swj_", "canary"} {
		if strings.Contains(own, secret) {
			t.Errorf("its own environment has %s: %s", secret, own)
		}
	}
	for _, wanted := range []string{"CI=true\n", "SWITCHYARD_PROJECT=alpha\n", fmt.Sprintf("SWITCHYARD_AGENT_ID=%s\n", agent.ID)} {
		if !strings.Contains(own, wanted) {
			t.Errorf("its own environment lacks %s: %s", wanted, own)
		}
	}
	p.stop(t, syscall.SIGTERM)
}

func TestAnAgentWithALongLabelKeepsItsIdentity(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	label := strings.Repeat("車", 100)
	run := func(args ...string) *process {
		return launch(t, switchyard(t, s.dir, append([]string{"agent", "--gateway", s.url, "--label", label}, args...)...))
	}
	p := run("--token", s.token())
	agent := s.wait("joined", func(a domain.Agent) bool { return a.Label == label })
	p.stop(t, syscall.SIGTERM)
	run()
	s.wait("back", func(a domain.Agent) bool { return a.ID == agent.ID })
}

func TestStateFilesHaveNamesOfTheirOwnThatFit(t *testing.T) {
	seen := map[string]string{}
	for _, label := range []string{
		"a", "a/b", "a%2Fb", "%", "%25", strings.Repeat("車", 100), strings.Repeat("車", 99) + "庫", strings.Repeat("/", 100), strings.Repeat("a", 100), strings.Repeat("é", 100),
	} {
		name := agentStateName(label)
		if other, ok := seen[name]; ok {
			t.Errorf("%s and %s share %s", label, other, name)
		}
		seen[name] = label
		if len("."+name+".tmp") > 255 || strings.Contains(name, "/") {
			t.Errorf("%s: %s has %d bytes", label, name, len(name))
		}
	}
	if name := agentStateName("builder-1"); name != "agent-builder-1.json" {
		t.Errorf("a short label: %s", name)
	}
}
