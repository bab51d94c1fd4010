package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/waittest"
)

// site is a gateway with the projects alpha and beta, and a directory for the agents of a test.
type site struct {
	*process
	t    *testing.T
	dir  string
	args []string // of the gateway
}

func newSite(t *testing.T, flags ...string) *site {
	t.Helper()
	s := &site{t: t, dir: t.TempDir(), args: append([]string{"gateway", "--listen", freeAddress(t), "--data", "DIR/data"}, flags...)}
	s.again()
	for _, name := range []string{"alpha", "beta"} {
		waittest.Until(t, "the project "+name, func() bool {
			status, text := s.do(t, "POST", "/api/gateway/projects", fmt.Sprintf(`{"name":%q,"url":"http://127.0.0.1:9/%s"}`, name, name))
			if status != 200 && status != 503 { // the database may not have answered yet
				t.Fatalf("adding %s: %d %s", name, status, text)
			}
			return status == 200
		})
	}
	return s
}

// again restarts the gateway with the same port and data.
func (s *site) again() {
	s.t.Helper()
	s.process = start(s.t, switchyard(s.t, s.dir, s.args...))
}

func (s *site) token() string {
	s.t.Helper()
	var answer struct{ Token string }
	if status, text := s.do(s.t, "POST", "/gateway/tokens", ""); status != 200 || json.Unmarshal([]byte(text), &answer) != nil {
		s.t.Fatalf("token: %d %s", status, text)
	}
	return answer.Token
}

func (s *site) agents() []domain.Agent {
	s.t.Helper()
	_, text := s.do(s.t, "GET", "/gateway/agents", "")
	var agents []domain.Agent
	if err := json.Unmarshal([]byte(text), &agents); err != nil {
		s.t.Fatalf("agents: %v: %s", err, text)
	}
	return agents
}

// wait waits until there is one live agent for which ok returns true.
func (s *site) wait(what string, ok func(domain.Agent) bool) domain.Agent {
	s.t.Helper()
	var last domain.Agent
	waittest.Until(s.t, what, func() bool {
		agents := s.agents()
		if len(agents) == 1 {
			last = agents[0]
		}
		return len(agents) == 1 && ok(last)
	})
	return last
}

func (s *site) assign(id, project string) {
	s.t.Helper()
	body := "{}"
	if project != "" {
		body = fmt.Sprintf(`{"project":%q}`, project)
	}
	if status, text := s.do(s.t, "POST", "/gateway/agents/"+id+"/assign", body); status != 200 {
		s.t.Fatalf("assign: %d %s", status, text)
	}
}

// builder is the command of the test's agents: it records its assignment and keeps running, together with a child.
const builder = `sleep 1000 & echo "$SWITCHYARD_PROJECT $SWITCHYARD_PROJECT_URL $SWITCHYARD_AGENT_ID $$ $! ${SWITCHYARD_TOKEN-none}" >> "$0"; echo "building $SWITCHYARD_PROJECT"; wait`

// run starts an agent whose command writes to DIR/work.
func (s *site) run(args ...string) *process {
	s.t.Helper()
	args = append([]string{"agent", "--gateway", s.url, "--label", "builder-1"}, args...)
	args = append(args, "--", "sh", "-c", builder, "DIR/work")
	s.t.Cleanup(func() { // after the agent has been killed
		for _, job := range s.work() {
			killGroup(job.pid)
		}
	})
	return launch(s.t, switchyard(s.t, s.dir, args...))
}

// job is a line that the command wrote.
type job struct {
	project, url, agent, token string
	pid, child                 int
}

func (j job) runs() bool { return runs(j.pid) || runs(j.child) }

func runs(pid int) bool {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && !strings.Contains(string(data), ") Z ")
}

func (s *site) work() []job {
	data, _ := os.ReadFile(filepath.Join(s.dir, "work"))
	var jobs []job
	for line := range strings.Lines(string(data)) {
		var j job
		if n, err := fmt.Sscan(line, &j.project, &j.url, &j.agent, &j.pid, &j.child, &j.token); n == 6 && err == nil {
			jobs = append(jobs, j)
		}
	}
	return jobs
}

// job waits for the nth line of work.
func (s *site) job(n int) job {
	s.t.Helper()
	waittest.Until(s.t, fmt.Sprintf("command %d starts", n), func() bool { return len(s.work()) >= n })
	return s.work()[n-1]
}

func (s *site) gone(j job) {
	s.t.Helper()
	waittest.Until(s.t, "the command at "+j.project+" ends", func() bool { return !j.runs() })
}

// TestAgentProgram follows an agent through its life.
func TestAgentProgram(t *testing.T) {
	t.Parallel()
	s := newSite(t, "--agent-timeout", "3m")
	token := s.token()
	p := s.run("--token", token)
	agent := s.wait("joined", func(a domain.Agent) bool {
		return a.Label == "builder-1" && a.State == domain.AgentIdle && a.Version == version()
	})

	began := time.Now()
	s.assign(agent.ID, "alpha")
	first := s.job(1)
	if took := time.Since(began); took > 25*time.Second { // the heartbeat is held for 30
		t.Errorf("the assignment took %v", took)
	}
	if first.project != "alpha" || first.url != "http://127.0.0.1:9/alpha" || first.agent != agent.ID || first.token != "none" {
		t.Errorf("the command's environment is %+v", first)
	}
	s.wait("running", func(a domain.Agent) bool { return a.State == domain.AgentRunning })

	s.assign(agent.ID, "beta")
	second := s.job(2)
	if first.runs() || second.project != "beta" {
		t.Errorf("reassigned: the first command runs: %v; now it is at %q", first.runs(), second.project)
	}

	if status, text := s.do(t, "PUT", "/api/gateway/projects/beta", `{"url":"http://127.0.0.1:9/moved"}`); status != 200 {
		t.Fatalf("moving beta: %d %s", status, text)
	}
	waittest.Until(t, "the agent has the address", func() bool {
		_, text := s.do(t, "GET", "/gateway/agents", "")
		return strings.Contains(text, `"project_url":"http://127.0.0.1:9/moved"`) && strings.Contains(text, `"state":"running"`)
	})
	if !second.runs() {
		t.Error("a new address of the same project has ended the command")
	}

	s.assign(agent.ID, "")
	s.gone(second)
	s.wait("idle", func(a domain.Agent) bool { return a.State == domain.AgentIdle })

	s.assign(agent.ID, "alpha")
	left := s.job(3)
	p.stop(t, syscall.SIGKILL)
	if !left.runs() {
		t.Fatal("the killed agent's command ended with it")
	}
	p = s.run() // needs no token
	back := s.job(4)
	if left.runs() || back.agent != agent.ID {
		t.Errorf("after kill -9: the command left behind runs: %v; the agent is %s, was %s", left.runs(), back.agent, agent.ID)
	}

	s.stop(t, syscall.SIGKILL)
	waittest.Until(t, "the agent notices", func() bool { return strings.Contains(p.stderr.String(), "the gateway cannot be reached") })
	s.again()
	waittest.Until(t, "the agent is back", func() bool { return strings.Contains(p.stderr.String(), "the gateway can be reached again") })
	s.wait("running on", func(a domain.Agent) bool { return a.ID == agent.ID && a.State == domain.AgentRunning })
	if !back.runs() || len(s.work()) != 4 {
		t.Error("the command did not run on while the gateway was away")
	}

	if status, says := refused(t, switchyard(t, s.dir, "agent", "--gateway", s.url, "--label", "builder-1")); status != 1 || !strings.Contains(says, "another agent is using") {
		t.Errorf("a second agent on the state file: status %d, %s", status, says)
	}

	if status, took := p.stop(t, syscall.SIGTERM); status != 0 || took > 40*time.Second {
		t.Errorf("SIGTERM: status %d after %v: %s", status, took, &p.stderr)
	}
	if back.runs() {
		t.Error("the command outlived its agent")
	}
	if agents := s.agents(); len(agents) != 0 {
		t.Errorf("a stopped agent is listed: %+v", agents)
	}
	s.assign(agent.ID, "beta") // its identity stays

	p = s.run()
	again := s.job(5)
	if again.project != "beta" || again.agent != agent.ID {
		t.Errorf("started again at %q as %s", again.project, again.agent)
	}
	if status, text := s.do(t, "DELETE", "/gateway/agents/"+agent.ID, ""); status != 204 {
		t.Fatalf("removing: %d %s", status, text)
	}
	select {
	case <-p.ended:
	case <-time.After(time.Minute):
		t.Fatal("the removed agent goes on")
	}
	if status := p.ProcessState.ExitCode(); status != 1 || !strings.Contains(p.stderr.String(), "its identity is gone") || again.runs() {
		t.Errorf("removed: status %d, command runs: %v: %s", status, again.runs(), &p.stderr)
	}

	p = s.run("--token", s.token()) // the paste of a new command works although the old state file is there
	joined := s.wait("joined again", func(a domain.Agent) bool { return a.ID != agent.ID })
	p.stop(t, syscall.SIGTERM)
	leave := switchyard(t, s.dir, "agent", "--gateway", s.url, "--label", "builder-1", "--leave")
	if out, err := leave.CombinedOutput(); err != nil {
		t.Errorf("leaving: %v: %s", err, out)
	}
	if status, _ := s.do(t, "POST", "/gateway/agents/"+joined.ID+"/assign", "{}"); status != 404 {
		t.Errorf("assigning an agent that left: %d, want 404", status)
	}
	if _, err := os.Stat(filepath.Join(s.dir, "home/.local/state/switchyard/agent-builder-1.json")); !os.IsNotExist(err) {
		t.Errorf("the state file after leaving: %v", err)
	}
	for _, text := range []string{s.stderr.String(), p.stderr.String()} {
		if strings.Contains(text, "swj_") || strings.Contains(text, "sws_") {
			t.Errorf("a secret in a log: %s", text)
		}
	}
}

// TestAgentCommandLine checks which command lines are refused, and with which status.
func TestAgentCommandLine(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for _, c := range []struct {
		args   string
		status int
		says   string
	}{
		{"", 2, "--gateway is required"},
		{"--gateway yard:3000", 2, "--gateway must be an address"},
		{"--gateway URL --label a/../b\x01", 2, "label: must not contain control characters"},
		{"--gateway URL make", 2, "must follow --"},
		{"--gateway URL --token swj_wrong", 1, "the join token is not valid"},
		{"--gateway URL", 1, "a join token is required"},
		{"--gateway URL --leave", 1, "nothing to leave"},
		{"--gateway URL/nowhere --token swj_wrong", 1, "404"},
		{"--gateway URL --state DIR/broken", 1, "is not an agent's state file"},
		{"--gateway URL --state DIR", 1, "directory"},
	} {
		if err := os.WriteFile(filepath.Join(s.dir, "broken"), []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
		var args []string
		if c.args != "" {
			args = strings.Split(strings.ReplaceAll(c.args, "URL", s.url), " ")
		}
		cmd := switchyard(t, s.dir, append([]string{"agent"}, args...)...)
		if status, says := exitOf(t, cmd); status != c.status || !strings.Contains(says, c.says) {
			t.Errorf("agent %s: status %d, %s; want %d, %s", c.args, status, says, c.status, c.says)
		}
	}
}

// TestUpEndsWithinTenSeconds: it waits for an agent's command and for clients at the same time.
func TestUpEndsWithinTenSeconds(t *testing.T) {
	t.Parallel()
	s := &site{t: t, dir: t.TempDir()}
	s.process = start(t, switchyard(t, s.dir, "up", "--listen", "localhost:0", "--data", "DIR/data", "--agent", "local", "--",
		"sh", "-c", "trap '' TERM\n"+builder, "DIR/work"))
	agent := s.wait("joined", func(a domain.Agent) bool { return a.Label == "local" })
	s.assign(agent.ID, "sample-shop")
	job := s.job(1)
	slow, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	fmt.Fprint(slow, "POST /api/gateway/switch HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
	asked := time.Now()
	if status, took := s.stop(t, syscall.SIGTERM); status != 0 || took < 6*time.Second || took > 40*time.Second || job.runs() {
		t.Errorf("SIGTERM: status %d after %v, the command runs: %v: %s", status, took, job.runs(), &s.stderr)
	}
	// A gateway that waited for the agent first would disconnect the client after 16 s.
	if after := s.logged(t, "cut off").Sub(asked); after > 15*time.Second {
		t.Errorf("the client was cut off after %v: %s", after, &s.stderr)
	}
	if strings.Contains(s.stderr.String(), "the gateway was not told") {
		t.Errorf("the agent could not say that it stops: %s", &s.stderr)
	}
}

// TestUpRunsAnAgentAlong: the agent joins automatically, works, reports that it stops, and is the same one the next time.
func TestUpRunsAnAgentAlong(t *testing.T) {
	t.Parallel()
	s := &site{t: t, dir: t.TempDir()}
	up := func() {
		t.Helper()
		s.process = start(t, switchyard(t, s.dir, "up", "--listen", "localhost:0", "--data", "DIR/data", "--agent", "local", "--", "sh", "-c", builder, "DIR/work"))
	}
	up()
	agent := s.wait("joined", func(a domain.Agent) bool { return a.Label == "local" })
	s.assign(agent.ID, "sample-shop")
	first := s.job(1)
	if status, took := s.stop(t, syscall.SIGTERM); status != 0 || took > 40*time.Second || first.runs() {
		t.Errorf("SIGTERM: status %d after %v, the command runs: %v: %s", status, took, first.runs(), &s.stderr)
	}
	if strings.Contains(s.stderr.String(), "the gateway was not told") {
		t.Errorf("the agent could not say that it stops: %s", &s.stderr)
	}
	up()
	if second := s.job(2); second.agent != agent.ID || second.project != "sample-shop" {
		t.Errorf("the next time it is %+v", second)
	}
	if status, _ := s.do(t, "DELETE", "/gateway/agents/"+agent.ID, ""); status != 204 {
		t.Errorf("removing: %d", status)
	}
	waittest.Until(t, "the agent ends", func() bool { return strings.Contains(s.stderr.String(), "the agent ended") })
	if agents := s.agents(); len(agents) != 0 {
		t.Errorf("a removed agent is back: %+v", agents)
	}
	for _, args := range [][]string{{"up", "--", "make"}, {"up", "--agent", "", "--", "make"}} {
		if status, says := refused(t, switchyard(t, s.dir, args...)); status != 2 || !strings.Contains(says, "--agent") {
			t.Errorf("%v: status %d, %s", args, status, says)
		}
	}
}

// TestAgentAsksForItsToken: it reads the token from standard input if neither a flag nor a variable has it.
func TestAgentAsksForItsToken(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	cmd := switchyard(t, s.dir, "agent", "--gateway", s.url, "--state", "DIR/state/agent.json")
	cmd.Stdin = strings.NewReader(s.token() + "\n")
	p := launch(t, cmd)
	host, _ := os.Hostname()
	s.wait("joined", func(a domain.Agent) bool { return a.Label == host })
	waittest.Until(t, "the identity is kept", func() bool { _, err := os.Stat(filepath.Join(s.dir, "state/agent.json")); return err == nil })
	if info, err := os.Stat(filepath.Join(s.dir, "state/agent.json")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the state file: %v, %v", info, err)
	}
	if info, err := os.Stat(filepath.Join(s.dir, "state")); err != nil || info.Mode() != fs.ModeDir|0o700 {
		t.Errorf("its directory: %v, %v", info, err)
	}
	if status, _ := p.stop(t, syscall.SIGINT); status != 0 {
		t.Errorf("SIGINT: status %d", status)
	}
}

// TestATokenIsSpentOnceWhateverDies kills the gateway right after it has answered a redemption.
func TestATokenIsSpentOnceWhateverDies(t *testing.T) {
	s := newSite(t, "--agent-timeout", "10m")
	for range 5 {
		body := fmt.Sprintf(`{"token":%q}`, s.token())
		status, text := s.do(t, "POST", "/gateway/agents", body)
		s.stop(t, syscall.SIGKILL)
		s.again()
		if status != 201 {
			t.Fatalf("joining: %d %s", status, text)
		}
		if status, _ := s.do(t, "POST", "/gateway/agents", body); status != 401 {
			t.Errorf("the token was redeemed twice: %d", status)
		}
	}
	if agents := s.agents(); len(agents) != 5 {
		t.Errorf("%d agents after the restarts, want 5: seen within the agent timeout, they are alive", len(agents))
	}
}

// exitOf runs a short command.
func exitOf(t *testing.T, cmd *exec.Cmd) (status int, says string) {
	t.Helper()
	timer := time.AfterFunc(time.Minute, func() { cmd.Process.Kill() })
	defer timer.Stop()
	out, _ := cmd.CombinedOutput()
	return cmd.ProcessState.ExitCode(), string(out)
}
