package agentrun

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"syscall"
	"time"

	"switchyard/internal/supervise"
)

const (
	// killGrace is how long killed processes may take to end; one in the middle of I/O cannot end before that completes.
	killGrace = 5 * time.Second
	// stopPoll is the interval at which a group that was asked to stop is checked.
	stopPoll = 50 * time.Millisecond
	// drainGrace is how long output is read after the group's last process ended: a process that left the group may keep
	// the pipe open forever.
	drainGrace = 500 * time.Millisecond
)

// agentIDVariable identifies the agent, to the command and to a later agent that finds the command after a crash.
const agentIDVariable = "SWITCHYARD_AGENT_ID"

// processGroup identifies a process group even after its number has been reused.
type processGroup struct {
	PGID    int    `json:"pgid"`
	Started string `json:"started"` // when its first process started, see startOf
}

// process is a running command.
type process struct {
	group   processGroup
	release *os.File // writing a line here starts the command
	output  *os.File // the read end of its output
	drained chan struct{}
	exited  chan struct{} // closed when the first process ended; then status is set
	status  string        // "exit status 1", "signal: killed"
	failed  bool
}

// gate is a shell script that replaces itself with the command once it reads a line, and ends if the agent dies before.
// So no command runs that is not recorded in a state file.
const gate = `read -r switchyard_gate <&3 || exit 1; exec 3<&- "$@"`

// prepare starts a command's process in its own process group. The command itself runs once begin is called.
func prepare(log *slog.Logger, argv, env []string, output io.Writer) (*process, error) {
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
	// With a file, rather than a writer, Wait does not wait for other processes that hold the pipe.
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
	supervise.Go(log, "output", func() {
		defer close(p.drained)
		io.Copy(output, read) //nolint:errcheck // ends with the pipe
	})
	supervise.Go(log, "command", func() {
		if err := cmd.Wait(); err != nil {
			p.failed = true
		}
		p.status = cmd.ProcessState.String()
		close(p.exited)
	})
	if err != nil {
		none, cancel := context.WithCancel(context.Background())
		cancel()
		p.stop(none)
		return nil, fmt.Errorf("cannot find out when the command started: %w", err)
	}
	return p, nil
}

// begin lets a prepared command run.
func (p *process) begin() error {
	_, err := p.release.WriteString("\n")
	return errors.Join(err, p.release.Close())
}

// stop ends all processes of the command's group and returns when they are gone. When grace ends it kills them.
func (p *process) stop(grace context.Context) {
	p.release.Close() // in case it has not begun
	stopGroup(grace, p.group.PGID)
	select {
	case <-p.drained:
	case <-time.After(drainGrace):
	}
	p.output.Close()
}

// stopGroup sends SIGTERM to a process group and, if any process is left when grace ends, SIGKILL.
func stopGroup(grace context.Context, pgid int) {
	_ = syscall.Kill(-pgid, syscall.SIGTERM) // the group may be gone
	if !groupEnds(grace, pgid) {
		_ = syscall.Kill(-pgid, syscall.SIGKILL)
		killed, cancel := context.WithTimeout(context.Background(), killGrace)
		defer cancel()
		groupEnds(killed, pgid)
	}
}

// groupEnds waits until no process of the group runs. It returns false if ctx ends first.
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

// stopLeftover ends the command that a killed agent left running, and reports whether there was one. Another group that
// has the same number by now is left alone.
func stopLeftover(grace context.Context, g processGroup, agentID string) bool {
	if g.PGID <= 1 {
		return false
	}
	started, err := startOf(g.PGID)
	isOurs := err == nil && started == g.Started ||
		err != nil && groupHasVariable(g.PGID, agentIDVariable+"="+agentID) // the first process has ended, others may run
	if isOurs {
		stopGroup(grace, g.PGID)
	}
	return isOurs
}
