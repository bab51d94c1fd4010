package git

import (
	"errors"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// limit ends a process if it allocates more than that, or takes more CPU time unless that is 0. Git also works without
// limits.
func limit(pid int, memory uint64, cpu time.Duration) {
	_ = unix.Prlimit(pid, unix.RLIMIT_DATA, &unix.Rlimit{Cur: memory, Max: memory}, nil)
	if seconds := uint64(cpu.Seconds()); seconds > 0 {
		_ = unix.Prlimit(pid, unix.RLIMIT_CORE, &unix.Rlimit{}, nil) // it would be left in the repository
		_ = unix.Prlimit(pid, unix.RLIMIT_CPU, &unix.Rlimit{Cur: seconds, Max: seconds + 1}, nil)
	}
}

// wasCutOff reports whether a command failed because it took more CPU time than it might.
func wasCutOff(err error) bool {
	exit, is := errors.AsType[*exec.ExitError](err)
	if !is {
		return false
	}
	status, is := exit.Sys().(syscall.WaitStatus)
	return is && status.Signal() == syscall.SIGXCPU
}

// inGroup makes a command end together with everything that it started, and with the thread that starts it: a shell
// notices when that ends, however it does, and ends the group.
func inGroup(cmd *exec.Cmd) {
	shell := exec.Command("sh", append([]string{"-c", `trap "kill -9 0" TERM; "$@" & wait $!`, "sh"}, cmd.Args...)...)
	if cmd.Path, cmd.Args = shell.Path, shell.Args; cmd.Err == nil {
		cmd.Err = shell.Err
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	cmd.Cancel = func() error { return killGroup(cmd) }
}

func killGroup(cmd *exec.Cmd) error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
