package pgtest

import (
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// runAs makes command run as that account, nil for the current one. The command's attributes are set.
func runAs(command *exec.Cmd, account *user.User) {
	command.SysProcAttr = &syscall.SysProcAttr{}
	if account != nil {
		uid, _ := strconv.ParseUint(account.Uid, 10, 32)
		gid, _ := strconv.ParseUint(account.Gid, 10, 32)
		command.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	}
}

// endWithUs makes a command of runAs end when this process does.
func endWithUs(command *exec.Cmd) { command.SysProcAttr.Pdeathsig = syscall.SIGQUIT }
