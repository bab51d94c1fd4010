package agentrun

import (
	"context"
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
	// stopPoll is the time between two checks of a group that was asked to stop.
	stopPoll = 50 * time.Millisecond
	// drainGrace is how long output is read on after the last process of the group ended: one that left the group
	// may hold the pipe for ever.
	drainGrace = 500 * time.Millisecond
)

// agentIDVariable says to the command, and to whoever finds it after a crash, whose it is.
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

// gate is the shell's part in starting a command: it becomes the command once a line arrives, and ends if the
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
		p.kill()
		return nil, fmt.Errorf("cannot find out when the command started: %w", err)
	}
	return p, nil
}

// begin lets a prepared command run.
func (p *process) begin() error {
	_, err := p.release.WriteString("\n")
	return errors.Join(err, p.release.Close())
}

// kill ends a command that has not begun.
func (p *process) kill() {
	none, cancel := context.WithCancel(context.Background())
	cancel()
	p.stop(none)
}

// stop ends the command's whole group, whatever of it is left, and returns when it is gone: by force when grace ends.
func (p *process) stop(grace context.Context) {
	p.release.Close() // where it was not begun
	stopGroup(grace, p.group.PGID)
	select {
	case <-p.drained:
	case <-time.After(drainGrace):
	}
	p.output.Close()
}

// stopGroup sends SIGTERM to a process group and, to what is left of it when grace ends, SIGKILL.
func stopGroup(grace context.Context, pgid int) {
	_ = syscall.Kill(-pgid, syscall.SIGTERM) // the group may be gone
	if !groupEnds(grace, pgid) {
		_ = syscall.Kill(-pgid, syscall.SIGKILL)
		killed, cancel := context.WithTimeout(context.Background(), killGrace)
		defer cancel()
		groupEnds(killed, pgid)
	}
}

// groupEnds waits until no process of the group runs; false means that some still did when ctx ended.
func groupEnds(ctx context.Context, pgid int) bool {
	poll := time.NewTicker(stopPoll)
	defer poll.Stop()
	for groupRuns(pgid) {
		select {
		case <-poll.C:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// stopLeftover ends what an agent that was killed left running, and reports whether there was anything.
// A group that only has the same number is left alone.
func stopLeftover(grace context.Context, g processGroup, agentID string) bool {
	if g.PGID <= 1 || !isLeftover(g, agentID) {
		return false
	}
	stopGroup(grace, g.PGID)
	return true
}

func isLeftover(g processGroup, agentID string) bool {
	if started, err := startOf(g.PGID); err == nil {
		return started == g.Started
	}
	return groupHasVariable(g.PGID, agentIDVariable+"="+agentID) // its first process ended, others may run on
}
