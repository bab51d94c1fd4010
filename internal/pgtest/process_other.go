//go:build !linux

package pgtest

import (
	"os/exec"
	"os/user"
)

// runAs does nothing: elsewhere than in Linux's containers nobody tests as root.
func runAs(*exec.Cmd, *user.User) {}

// endWithUs is for Linux only.
func endWithUs(*exec.Cmd) {}
