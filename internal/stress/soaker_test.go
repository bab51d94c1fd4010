//go:build stress

package stress

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

const stopSignal, wakeSignal = syscall.SIGSTOP, syscall.SIGCONT

// soaker is switchyard agent with contrib/work-on-stories.sh, in a session of its own, as on a machine of its own.
type soaker struct {
	t       *testing.T
	id      string
	command []string
	log     *os.File
	current *exec.Cmd
	begun   []int  // the sessions of all its processes
	away    []life // from each kill to the next start
}

func newSoaker(t *testing.T, program, gateway, dir, label string) *soaker {
	t.Helper()
	script, err := filepath.Abs("../../contrib/work-on-stories.sh")
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(dir, label+".log"))
	if err != nil {
		t.Fatal(err)
	}
	var join struct{ Token string }
	must(t, "POST", gateway+"/gateway/tokens", nil, &join)
	a := &soaker{t: t, log: log, command: []string{
		program, "agent", "--gateway", gateway, "--label", label, "--state", filepath.Join(dir, label+".json"), "--token", join.Token,
		"--", "sh", script, "sh", "-c", workWithSoak, dir,
	}}
	t.Cleanup(func() {
		for _, session := range a.begun {
			for _, pid := range processesOf(session) {
				signal(pid, syscall.SIGKILL)
			}
		}
		_ = a.current.Wait()
		if text, _ := os.ReadFile(log.Name()); t.Failed() {
			t.Logf("%s said at last:\n%s", label, text[max(0, len(text)-2000):])
		}
	})
	a.start()
	var agents []struct{ ID, Label string }
	if !until(soon, func() bool {
		must(t, "GET", gateway+"/gateway/agents", nil, &agents)
		agents = slices.DeleteFunc(agents, func(joined struct{ ID, Label string }) bool { return joined.Label != label })
		return len(agents) == 1
	}) {
		t.Fatalf("%s has not joined", label)
	}
	a.id = agents[0].ID
	must(t, "POST", gateway+"/gateway/agents/"+a.id+"/assign", map[string]string{"project": "alpha"}, nil)
	return a
}

func (a *soaker) start() {
	a.t.Helper()
	a.current = exec.Command(a.command[0], a.command[1:]...)
	a.current.Env = []string{"HOME=" + filepath.Dir(a.log.Name()), "PATH=" + os.Getenv("PATH")}
	a.current.Stdout, a.current.Stderr = a.log, a.log
	a.current.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := a.current.Start(); err != nil {
		a.t.Fatal(err)
	}
	a.begun = append(a.begun, a.current.Process.Pid)
	if n := len(a.away); n > 0 {
		a.away[n-1].ended = time.Now()
	}
}

// kill is kill -9 of the agent; its command is left behind.
func (a *soaker) kill() {
	a.t.Helper()
	a.away = append(a.away, life{time.Now(), forever})
	if err := a.current.Process.Kill(); err != nil {
		a.t.Fatal(err)
	}
	_ = a.current.Wait() // killed
}

// wasAway reports whether the agent may not have noted what it had done then: its command, which is left behind, ends when the
// next agent starts.
func (a *soaker) wasAway(then time.Time) bool {
	const noting = 2 * time.Second
	return slices.ContainsFunc(a.away, func(l life) bool { return then.Add(noting).After(l.began) && l.ended.Add(noting).After(then) })
}

// sleep stops the agent with all that it has started for a while, or until ctx ends.
func (a *soaker) sleep(ctx context.Context, duration time.Duration) {
	asleep := processesOf(a.begun[len(a.begun)-1])
	for _, pid := range asleep {
		signal(pid, stopSignal)
	}
	pause(ctx, duration)
	for _, pid := range asleep {
		signal(pid, wakeSignal)
	}
}

// signal is for processes that may have ended.
func signal(pid int, s syscall.Signal) { _ = syscall.Kill(pid, s) }

// processesOf returns the processes of a session.
func processesOf(session int) (pids []int) {
	paths, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range paths {
		text, _ := os.ReadFile(path) // it may have ended
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		if len(fields) > 3 && fields[3] == strconv.Itoa(session) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			pids = append(pids, pid)
		}
	}
	return pids
}

func runIn(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", cmd, err, out)
	}
}

// backlog runs Backlog.md's own tool, which npm installs for internal/boardtools.
func backlog(dir string, args ...string) ([]byte, error) {
	path, err := filepath.Abs("../boardtools/node_modules/.bin/backlog")
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(path, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+filepath.Dir(dir), "DO_NOT_TRACK=1")
	return cmd.CombinedOutput()
}

// files returns the stories of a folder of the tool.
func (s *soak) files(folder string) []string {
	found, _ := filepath.Glob(filepath.Join(s.dir, "backlog", folder, "*.md"))
	return found
}
