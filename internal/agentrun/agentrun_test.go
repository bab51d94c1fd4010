//go:build unix

package agentrun_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"switchyard/internal/agentrun"
	"switchyard/internal/domain"
	"switchyard/internal/waittest"
)

// run runs an agent until the returned function is called, which returns what Run returned.
func run(t *testing.T, g *fakeGateway, state string, command ...string) (stop func() error) {
	t.Helper()
	return runWith(t, g, state, agentrun.Options{Command: command})
}

func runWith(t *testing.T, g *fakeGateway, state string, o agentrun.Options) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- agentrun.Run(ctx, agentrun.Options{
			Gateway: g.URL, Label: "label", StateFile: state, Version: "1",
			Token:   func(context.Context) (domain.Secret, error) { return "swj_x", nil },
			Command: o.Command, WhenWaiting: o.WhenWaiting, Environment: os.Environ(), Output: io.Discard, Log: slog.New(slog.DiscardHandler),
		})
	}()
	var once sync.Once
	var err error
	stop = func() error {
		once.Do(func() {
			cancel()
			select {
			case err = <-done:
			case <-time.After(time.Minute):
				t.Error("the agent does not stop")
			}
		})
		return err
	}
	t.Cleanup(func() { stop() })
	return stop
}

// pids returns the process ids that a command wrote to a file.
func pids(file string) (all []int) {
	data, _ := os.ReadFile(file)
	for line := range strings.Lines(string(data)) {
		if pid, err := strconv.Atoi(strings.TrimSpace(line)); err == nil {
			all = append(all, pid)
		}
	}
	return all
}

func runs(pid int) bool {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(data), ") Z ")
}

func TestACommandThatEndsIsReportedAndStartedAgain(t *testing.T) {
	t.Parallel()
	g, dir := newFakeGateway(t), t.TempDir()
	work := filepath.Join(dir, "work")
	// Each start leaves a child in the group.
	run(t, g, filepath.Join(dir, "state"), "sh", "-c", `read up rest < /proc/uptime; echo $up >> "$0.starts"; sleep 1000 & echo $! >> "$0"; echo "line one"; echo broken >&2; exit 3`, work)
	g.assign("alpha")
	b := g.said(t, "the failure is reported", func(b beat) bool { return b.State == "failed" })
	if b.Detail != "exit status 3\nline one\nbroken" {
		t.Errorf("the detail is %q", b.Detail)
	}
	waittest.Until(t, "the command is started again", func() bool { return len(pids(work)) >= 2 })
	if runs(pids(work)[0]) {
		t.Error("what was left of the first command runs beside the second")
	}
	var first, second float64
	starts, _ := os.ReadFile(work + ".starts")
	if _, err := fmt.Sscan(string(starts), &first, &second); err != nil || second-first < 0.9 {
		t.Errorf("started at %q, %v; want a second or more in between", starts, err)
	}
}

// TestTheCommandGetsATokenOfItsOwn: the same one while it is valid, and another one for each assignment.
func TestTheCommandGetsATokenOfItsOwn(t *testing.T) {
	t.Parallel()
	g, out := newFakeGateway(t), filepath.Join(t.TempDir(), "out")
	lines := func() []string {
		data, _ := os.ReadFile(out)
		return strings.Fields(string(data))
	}
	last := func() string {
		all := lines()
		return all[len(all)-1]
	}
	run(t, g, out+".state", "sh", "-c", `[ "$SWITCHYARD_MCP_URL" = "$SWITCHYARD_GATEWAY_URL/mcp" ] && echo "$SWITCHYARD_PROJECT,${SWITCHYARD_MCP_URL-none},${SWITCHYARD_API_TOKEN-none}" >> "$0"`, out)
	g.assign("alpha")
	waittest.Until(t, "the command has run twice", func() bool { return len(lines()) >= 2 })
	g.mu.Lock()
	g.ended = true
	g.mu.Unlock()
	waittest.Until(t, "it gets a new token", func() bool { return strings.HasSuffix(last(), ",swk_2") })
	g.assign("beta")
	waittest.Until(t, "it runs elsewhere", func() bool { return strings.HasPrefix(last(), "beta,") })
	url := "," + g.URL + "/mcp,"
	all := lines()
	if want := "alpha" + url + "swk_1"; all[0] != want || all[1] != want {
		t.Errorf("the first runs had %q, want %q", all[:2], want)
	}
	if want := "beta" + url + "swk_3"; all[len(all)-1] != want {
		t.Errorf("the last run had %q, want %q", all[len(all)-1], want)
	}
}

func TestAGatewayWithoutTokensForCommandsGivesNone(t *testing.T) {
	t.Parallel()
	g, out := newFakeGateway(t), filepath.Join(t.TempDir(), "out")
	g.noToken = true
	run(t, g, out+".state", "sh", "-c", `echo "$SWITCHYARD_PROJECT,${SWITCHYARD_MCP_URL-none},${SWITCHYARD_API_TOKEN-none}" >> "$0"; exec sleep 1000`, out)
	g.assign("alpha")
	waittest.Until(t, "the command runs", func() bool { data, _ := os.ReadFile(out); return string(data) == "alpha,none,none\n" })
}

// TestAHeartbeatFits: a gateway accepts 4 KiB, however much longer output becomes as JSON.
func TestAHeartbeatFits(t *testing.T) {
	t.Parallel()
	g := newFakeGateway(t)
	run(t, g, filepath.Join(t.TempDir(), "state"), "sh", "-c", `i=0; while [ $i -lt 500 ]; do printf '<>"&'; i=$((i+1)); done; echo the end; exit 3`)
	g.assign("alpha")
	b := g.said(t, "the failure is reported", func(b beat) bool { return b.State == "failed" })
	if !strings.HasSuffix(b.Detail, "the end") || b.size > 4096 || b.size < 3000 {
		t.Errorf("%d bytes that end in %q", b.size, b.Detail[max(0, len(b.Detail)-10):])
	}
}

func TestACleanEndIsIdle(t *testing.T) {
	t.Parallel()
	g := newFakeGateway(t)
	run(t, g, filepath.Join(t.TempDir(), "state"), "true")
	g.assign("alpha")
	g.said(t, "the end is reported", func(b beat) bool { return b.State == "idle" && b.Detail == "exit status 0" })
}

func TestACommandThatCannotStartIsReported(t *testing.T) {
	t.Parallel()
	g := newFakeGateway(t)
	run(t, g, filepath.Join(t.TempDir(), "state"), "/nowhere/at/all")
	g.assign("alpha")
	g.said(t, "the failure is reported", func(b beat) bool {
		return b.State == "failed" && strings.HasPrefix(b.Detail, "cannot start: ")
	})
}

// TestAGatewayThatIsAwayIsNotAskedInABusyLoop: a second or more between attempts.
func TestAGatewayThatIsAwayIsNotAskedInABusyLoop(t *testing.T) {
	t.Parallel()
	g := newFakeGateway(t)
	run(t, g, filepath.Join(t.TempDir(), "state"))
	g.said(t, "it is there", func(b beat) bool { return b.State == "idle" })
	g.mu.Lock()
	g.status = http.StatusBadGateway
	g.mu.Unlock()
	before := len(g.seen())
	g.assign("") // ends the heartbeat that is being held
	waittest.Until(t, "three attempts", func() bool { return len(g.seen()) >= before+3 })
	beats := g.seen()[before:]
	for i := range beats[1:] {
		if pause := beats[i+1].at.Sub(beats[i].at); pause < 900*time.Millisecond {
			t.Errorf("attempt %d came %v after the one before", i+1, pause)
		}
	}
}

// TestAGatewayThatDoesNotHoldIsNotAskedInABusyLoop: ten times a second at most.
func TestAGatewayThatDoesNotHoldIsNotAskedInABusyLoop(t *testing.T) {
	t.Parallel()
	var calls []time.Time
	var mu sync.Mutex
	hasty := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		calls = append(calls, time.Now())
		_ = json.NewEncoder(w).Encode(map[string]any{"agent": map[string]any{"id": "a1"}, "secret": "s1"})
	}))
	t.Cleanup(hasty.Close)
	run(t, &fakeGateway{Server: hasty}, filepath.Join(t.TempDir(), "state"))
	waittest.Until(t, "42 calls", func() bool { mu.Lock(); defer mu.Unlock(); return len(calls) >= 42 })
	mu.Lock()
	defer mu.Unlock()
	if took := calls[41].Sub(calls[1]); took < 3200*time.Millisecond { // the first of them may have been on its way for long
		t.Errorf("forty heartbeats within %v", took)
	}
}

func TestALostIdentityEndsTheAgentAndItsCommand(t *testing.T) {
	t.Parallel()
	g, dir := newFakeGateway(t), t.TempDir()
	work := filepath.Join(dir, "work")
	ctx := t.Context()
	ended := make(chan error, 1)
	go func() {
		ended <- agentrun.Run(ctx, agentrun.Options{
			Gateway: g.URL, Label: "label", StateFile: filepath.Join(dir, "state"),
			Token:   func(context.Context) (domain.Secret, error) { return "swj_x", nil },
			Command: []string{"sh", "-c", `echo $$ >> "$0"; exec sleep 1000`, work}, Output: io.Discard, Log: slog.New(slog.DiscardHandler),
		})
	}()
	g.assign("alpha")
	waittest.Until(t, "the command runs", func() bool { return len(pids(work)) == 1 })
	g.mu.Lock()
	g.status = http.StatusUnauthorized
	g.mu.Unlock()
	g.assign("alpha")
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "its identity is gone") {
		t.Errorf("the agent ended with %v", err)
	}
	if runs(pids(work)[0]) {
		t.Error("the command runs on")
	}
}

// sleeper starts a process group: a leader that ends on request, and a child that stays.
func sleeper(t *testing.T, environment string) (group agentrun.Group, child int, endLeader func()) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "child")
	cmd := exec.Command("sh", "-c", `sleep 1000 & echo $! > "$0"; read -r line`, file)
	cmd.Env = append(os.Environ(), environment)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	reaped := make(chan struct{})
	go func() { _ = cmd.Wait(); close(reaped) }()
	waittest.Until(t, "the child runs", func() bool { return len(pids(file)) == 1 })
	child = pids(file)[0]
	t.Cleanup(func() {
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		<-reaped
	})
	return agentrun.GroupOf(cmd.Process.Pid), child, func() { in.Close(); <-reaped }
}

// TestOnlyOnesOwnLeftoverIsEnded: a process that merely has the same number as an earlier one is never touched.
func TestOnlyOnesOwnLeftoverIsEnded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, environment string
		leaderEnds, later bool // later: the number belongs to a process that started at another time
		ended             bool
	}{
		{name: "the command still runs", ended: true},
		{name: "the number was given to another process", later: true},
		{name: "its first process ended", environment: "SWITCHYARD_AGENT_ID=a1", leaderEnds: true, ended: true},
		{name: "the group is another agent's", environment: "SWITCHYARD_AGENT_ID=a2", leaderEnds: true},
		{name: "the group is a stranger's", leaderEnds: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			group, child, endLeader := sleeper(t, c.environment)
			if c.leaderEnds {
				endLeader()
			}
			if c.later {
				group.Started += "1"
			}
			if ended := agentrun.StopLeftover(group, "a1"); ended != c.ended || runs(child) == c.ended {
				t.Errorf("ended: %v, the child runs: %v; want ended %v", ended, runs(child), c.ended)
			}
		})
	}
}

// TestNoCommandRunsUnrecorded: an agent that dies before it has recorded a command leaves none behind.
func TestNoCommandRunsUnrecorded(t *testing.T) {
	t.Parallel()
	mark := filepath.Join(t.TempDir(), "mark")
	if err := agentrun.PrepareOnly([]string{"touch", mark}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(mark); !os.IsNotExist(err) {
		t.Errorf("the command ran: %v", err)
	}
}

func TestTail(t *testing.T) {
	long := strings.Repeat("ä", 3000)
	for _, c := range []struct {
		output []string
		want   string
	}{
		{nil, ""},
		{[]string{"one\n"}, "one"},
		{[]string{"on", "e\ntwo"}, "one\ntwo"},
		{[]string{"1\n2\n3\n4\n5\n6\n7\n8\n", "9\n10\n11\n12\n"}, "3\n4\n5\n6\n7\n8\n9\n10\n11\n12"},
		{[]string{"\x1b[31mred\x1b[0m\tok\r\n\x00"}, "[31mred[0m\tok"},
		{[]string{"x" + long}, strings.Repeat("ä", 1024)},
		{[]string{"x", long, "y"}, strings.Repeat("ä", 1023) + "y"},
	} {
		if got := agentrun.Tail(c.output...); got != c.want {
			t.Errorf("the tail of %.20q is %.20q (%d bytes), want %.20q (%d bytes)", c.output, got, len(got), c.want, len(c.want))
		}
	}
}

// TestAProjectsNewAddressEndsNoCommand, as after a restart of its server; another project does.
func TestAProjectsNewAddressEndsNoCommand(t *testing.T) {
	t.Parallel()
	g, dir := newFakeGateway(t), t.TempDir()
	work := filepath.Join(dir, "work")
	run(t, g, filepath.Join(dir, "state"), "sh", "-c", `echo $$ >> "$0"; exec sleep 1000`, work)
	g.assign("alpha")
	waittest.Until(t, "the command runs", func() bool { return len(pids(work)) == 1 })
	beats := len(g.seen())
	g.mu.Lock()
	g.address = "http://127.0.0.1:2"
	g.mu.Unlock()
	g.assign("alpha")
	waittest.Until(t, "the agent has heard of it", func() bool { return len(g.seen()) > beats })
	g.assign("beta")
	waittest.Until(t, "the other project's command runs", func() bool { return len(pids(work)) >= 2 })
	if all := pids(work); len(all) != 2 || runs(all[0]) {
		t.Errorf("started as %v", all)
	}
}

// TestACommandThatCostsMoneyStartsWhenAStoryWaits, and not before; its end does not start it again either.
func TestACommandThatCostsMoneyStartsWhenAStoryWaits(t *testing.T) {
	t.Parallel()
	g, dir := newFakeGateway(t), t.TempDir()
	work := filepath.Join(dir, "work")
	runWith(t, g, filepath.Join(dir, "state"), agentrun.Options{Command: []string{"sh", "-c", `echo $$ >> "$0"`, work}, WhenWaiting: true})
	g.assign("alpha")
	look := func(story string) {
		t.Helper()
		g.mu.Lock()
		g.waiting = story
		before := g.looks
		g.mu.Unlock()
		waittest.Until(t, "the agent looks", func() bool { g.mu.Lock(); defer g.mu.Unlock(); return g.looks > before+1 })
	}
	look("")
	if all := pids(work); len(all) != 0 {
		t.Errorf("started as %v", all)
	}
	g.said(t, "it says what it waits for", func(b beat) bool { return b.State == "idle" && b.Detail == "waiting for a story" })
	g.mu.Lock()
	g.waiting = "1_story"
	g.mu.Unlock()
	waittest.Until(t, "the command is started", func() bool { return len(pids(work)) > 0 })
	look("")
	started := len(pids(work))
	if look(""); len(pids(work)) != started {
		t.Errorf("started %d times, then as %v", started, pids(work))
	}
}

// TestMessagesOfCodingAgentsAreShownAsWords: what claude --output-format stream-json and codex exec --json print.
func TestMessagesOfCodingAgentsAreShownAsWords(t *testing.T) {
	t.Parallel()
	g, dir := newFakeGateway(t), t.TempDir()
	lines := []string{
		`{"type":"system","subtype":"init","session_id":"s","tools":["` + strings.Repeat("x", 5000) + `"]}`,
		`{"type":"assistant","message":{"content":[{"type":"text","text":"I look at it."},{"type":"tool_use","name":"Bash","input":{"command":"ls"}}]}}`,
		`{"type":"item.completed","item":{"type":"agent_message","text":"It is done."}}`,
		`{"type":"result","subtype":"success","result":"All tests pass."}`, `{"own": 1}`, `plain`,
	}
	file := filepath.Join(dir, "lines")
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, g, filepath.Join(dir, "state"), "sh", "-c", `cat "$0"; exit 3`, file)
	g.assign("alpha")
	b := g.said(t, "the failure is reported", func(b beat) bool { return b.State == "failed" })
	if want := "exit status 3\nsystem init\nI look at it.\nuses Bash\nIt is done.\nAll tests pass.\n{\"own\": 1}\nplain"; b.Detail != want {
		t.Errorf("the detail is %q, want %q", b.Detail, want)
	}
}
