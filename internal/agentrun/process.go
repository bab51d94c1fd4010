package agentrun

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
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

type process struct {
	id      processGroup
	group   group
	output  *os.File // the read end of its output
	drained chan struct{}
	exited  chan struct{} // closed when the first process ended; then status is set
	status  string        // "exit status 1", "signal: killed"
	failed  bool
}

// group is the processes of a prepared command, which is held back until it begins.
type group interface {
	begin() error
	ask() // them to end
	kill()
	run() bool // reports whether any of them still runs
	close()    // releases what we hold of the system, and ends what has not begun
}

// prepare starts a command's process in its own process group. The command itself runs once the group begins.
func prepare(log *slog.Logger, argv, env []string, output io.Writer) (*process, error) {
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return nil, err
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer write.Close()
	cmd := &exec.Cmd{Path: path, Args: argv, Env: env}
	// With a file, rather than a writer, Wait does not wait for other processes that hold the pipe.
	cmd.Stdout, cmd.Stderr = write, write
	group, err := startHeld(cmd)
	if err != nil {
		return nil, errors.Join(err, read.Close())
	}
	p := &process{
		id: processGroup{PGID: cmd.Process.Pid}, group: group, output: read,
		drained: make(chan struct{}), exited: make(chan struct{}),
	}
	p.id.Started, err = startOf(p.id.PGID)
	supervise.Go(log, "output", func() {
		defer close(p.drained)
		io.Copy(output, read) //nolint:errcheck // ends with the pipe
	})
	supervise.Go(log, "command", func() {
		p.failed = cmd.Wait() != nil
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

// stop ends all processes of the command's group and returns when they are gone. When grace ends it kills them.
func (p *process) stop(grace context.Context) {
	stopGroup(grace, p.group)
	p.group.close()
	select {
	case <-p.drained:
	case <-time.After(drainGrace):
	}
	p.output.Close()
}

// stopGroup asks a group's processes to end and, if any is left when grace ends, kills them.
func stopGroup(grace context.Context, group group) {
	group.ask()
	if !groupEnds(grace, group) {
		group.kill()
		killed, cancel := context.WithTimeout(context.Background(), killGrace)
		defer cancel()
		groupEnds(killed, group)
	}
}

// groupEnds waits until no process of the group runs. It returns false if ctx ends first.
func groupEnds(ctx context.Context, group group) bool {
	poll := time.NewTicker(stopPoll)
	defer poll.Stop()
	for group.run() {
		select {
		case <-poll.C:
		case <-ctx.Done():
			return false
		}
	}
	return true
}
