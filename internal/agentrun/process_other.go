//go:build unix && !linux

package agentrun

import (
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

func hideMemory() error { return nil }

func startOf(pid int) (string, error) {
	out, err := exec.Command("ps", "-o", "lstart=", "-p", strconv.Itoa(pid)).Output()
	return strings.TrimSpace(string(out)), err
}

func groupRuns(pgid int) bool { return syscall.Kill(-pgid, 0) != syscall.ESRCH }

// groupHasVariable cannot be determined on this system. It returns false, so that a group whose first process has ended
// is left alone.
func groupHasVariable(int, string) bool { return false }
