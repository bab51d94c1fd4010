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

// unixGroup is a process group. A line written to release lets its command run; closing that ends one that waits.
type unixGroup struct {
	id      int
	release *os.File
}

func startHeld(cmd *exec.Cmd) (group, error) {
	hold, release, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer hold.Close()
	cmd.Args = append([]string{"sh", "-c", gateScript, "sh", cmd.Path}, cmd.Args[1:]...)
	cmd.Path = "/bin/sh"
	cmd.ExtraFiles = []*os.File{hold}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, release.Close())
	}
	return unixGroup{cmd.Process.Pid, release}, nil
}

func (g unixGroup) begin() error {
	_, err := g.release.WriteString("\n")
	return errors.Join(err, g.release.Close())
}

func (g unixGroup) ask() {
	g.release.Close()
	_ = syscall.Kill(-g.id, syscall.SIGTERM) // the group may be gone
}

func (g unixGroup) kill()     { _ = syscall.Kill(-g.id, syscall.SIGKILL) }
func (g unixGroup) run() bool { return groupRuns(g.id) }
func (g unixGroup) close()    { g.release.Close() }

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
		stopGroup(grace, unixGroup{id: g.PGID})
	}
	return isOurs
}
