//go:build unix

package agentrun

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// gateScript replaces itself with the command once it reads a line, and ends if the agent dies before. So no command
// runs that is not recorded in a state file.
const gateScript = `read -r switchyard_gate <&3 || exit 1; exec 3<&- "$@"`

// startHeld starts a command in its own process group, which is held back by the gate.
func startHeld(cmd *exec.Cmd) (members, gate, error) {
	hold, release, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	defer hold.Close()
	cmd.Args = append([]string{"sh", "-c", gateScript, "sh", cmd.Path}, cmd.Args[1:]...)
	cmd.Path = "/bin/sh"
	cmd.ExtraFiles = []*os.File{hold}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, nil, errors.Join(err, release.Close())
	}
	return groupID(cmd.Process.Pid), pipeGate{release}, nil
}

// pipeGate is the end of the pipe to which a line is written.
type pipeGate struct{ release *os.File }

func (g pipeGate) open() error {
	_, err := g.release.WriteString("\n")
	return errors.Join(err, g.release.Close())
}

func (g pipeGate) close() { g.release.Close() }

type groupID int

func (g groupID) ask()      { _ = syscall.Kill(-int(g), syscall.SIGTERM) } // the group may be gone
func (g groupID) kill()     { _ = syscall.Kill(-int(g), syscall.SIGKILL) }
func (g groupID) run() bool { return groupRuns(int(g)) }
func (g groupID) close()    {}

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
		stopGroup(grace, groupID(g.PGID))
	}
	return isOurs
}
