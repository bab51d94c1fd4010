package agentrun

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
)

const (
	// killGrace is how long killed processes may take to vanish; the kernel holds on to one that is in the middle of I/O.
	killGrace = 5 * time.Second
	// stopPoll is the time between two looks at a group that was told to end.
	stopPoll = 50 * time.Millisecond
	// drainGrace is how long output is read on after the last process of the group ended: one that left the group
	// may hold the pipe for ever.
	drainGrace = time.Second
)

// agentIDVariable tells the command, and whoever finds it after a crash, whose it is.
const agentIDVariable = "SWITCHYARD_AGENT_ID"

// processGroup names a process group so that it is not mistaken for a later one of the same number.
type processGroup struct {
	PGID    int    `json:"pgid"`
	Started string `json:"started"` // when its first process started, as the system says it
}

// process is a running command.
type process struct {
	group   processGroup
	release *os.File // a line written here lets the command begin
	output  *os.File // the reading end of its output
	drained chan struct{}
	exited  chan struct{} // closed when the first process ended; then status is set
	status  string        // "exit status 1", "signal: killed"
	failed  bool
}

// gate is the shell's part in starting a command: it becomes the command once it is told to, and ends where the
// agent dies before. So no command runs that no state file knows of.
const gate = `read -r switchyard_gate <&3 || exit 1; exec 3<&- "$@"`

// prepare starts a command in a process group of its own, up to the point where begin lets it run.
func prepare(argv, env []string, output io.Writer) (*process, error) {
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return nil, err
	}
	hold, release, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer hold.Close()
	read, write, err := os.Pipe()
	if err != nil {
		release.Close()
		return nil, err
	}
	defer write.Close()
	cmd := exec.Command("/bin/sh", append([]string{"-c", gate, "sh", path}, argv[1:]...)...)
	cmd.Env = env
	// A file, not a writer: Wait then does not wait for whoever else holds the pipe.
	cmd.Stdout, cmd.Stderr = write, write
	cmd.ExtraFiles = []*os.File{hold}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, release.Close(), read.Close())
	}
	p := &process{
		group:   processGroup{PGID: cmd.Process.Pid},
		release: release, output: read, drained: make(chan struct{}), exited: make(chan struct{}),
	}
	p.group.Started, err = startOf(p.group.PGID)
	go func() {
		io.Copy(output, read) //nolint:errcheck // ends with the pipe
		close(p.drained)
	}()
	go func() {
		if err := cmd.Wait(); err != nil {
			p.failed = true
		}
		p.status = cmd.ProcessState.String()
		close(p.exited)
	}()
	if err != nil {
		p.stop(0)
		return nil, fmt.Errorf("cannot tell when the command started: %w", err)
	}
	return p, nil
}

// begin lets a prepared command run.
func (p *process) begin() error {
	_, err := p.release.WriteString("\n")
	return errors.Join(err, p.release.Close())
}

// stop ends the command's whole group, whatever of it is left, and returns when it is gone.
func (p *process) stop(grace time.Duration) {
	p.release.Close() // where it was not begun
	stopGroup(p.group.PGID, grace)
	select {
	case <-p.drained:
	case <-time.After(drainGrace):
	}
	p.output.Close()
}

// stopGroup sends SIGTERM to a process group and, to what is left of it after grace, SIGKILL.
func stopGroup(pgid int, grace time.Duration) {
	_ = syscall.Kill(-pgid, syscall.SIGTERM) // the group may be gone
	if !groupEnds(pgid, grace) {
		_ = syscall.Kill(-pgid, syscall.SIGKILL)
		groupEnds(pgid, killGrace)
	}
}

// groupEnds waits until no process of the group runs; false means that some still did after limit.
func groupEnds(pgid int, limit time.Duration) bool {
	poll := time.NewTicker(stopPoll)
	defer poll.Stop()
	deadline := time.After(limit)
	for groupRuns(pgid) {
		select {
		case <-poll.C:
		case <-deadline:
			return false
		}
	}
	return true
}

// stopLeftover ends what an agent that was killed left running, and reports whether there was anything.
// A group that only has the same number is left alone.
func stopLeftover(g processGroup, agentID string, grace time.Duration) bool {
	if g.PGID <= 1 || !isLeftover(g, agentID) {
		return false
	}
	stopGroup(g.PGID, grace)
	return true
}

func isLeftover(g processGroup, agentID string) bool {
	if started, err := startOf(g.PGID); err == nil {
		return started == g.Started
	}
	return groupHasVariable(g.PGID, agentIDVariable+"="+agentID) // its first process ended, others may run on
}
