package git

import (
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// limitMemory ends the process if it allocates more than that. Git also works without a limit.
func limitMemory(pid int, most uint64) {
	_ = unix.Prlimit(pid, unix.RLIMIT_DATA, &unix.Rlimit{Cur: most, Max: most}, nil)
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
