//go:build !linux

package git

import (
	"os/exec"
	"time"
)

func limit(int, uint64, time.Duration) {}

func wasCutOff(error) bool { return false }

// inGroup leaves a command alone: only its first process ends with it.
func inGroup(*exec.Cmd) {}

func killGroup(*exec.Cmd) error { return nil }
