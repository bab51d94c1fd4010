//go:build !linux

package git

import (
	"os/exec"
	"time"
)

func limit(int, uint64, time.Duration) {}

// inGroup leaves a command alone: only its first process ends with it.
func inGroup(*exec.Cmd) {}

func killGroup(*exec.Cmd) error { return nil }
