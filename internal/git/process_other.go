//go:build !linux

package git

import "os/exec"

func limitMemory(int, uint64) {}

// inGroup leaves a command alone: only its first process ends with it.
func inGroup(*exec.Cmd) {}

func killGroup(*exec.Cmd) error { return nil }
