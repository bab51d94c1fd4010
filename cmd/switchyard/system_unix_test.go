//go:build unix

package main

import "golang.org/x/sys/unix"

func makeFifo(path string) error { return unix.Mkfifo(path, 0o600) }

func killGroup(pgid int) { _ = unix.Kill(-pgid, unix.SIGKILL) }
