//go:build unix

package main

import (
	"math"
	"syscall"

	"golang.org/x/sys/unix"
)

// descriptorLimit returns how many files and connections this process may have open.
func descriptorLimit() uint64 {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return math.MaxUint64
	}
	return limit.Cur
}

// freeSpace returns how many bytes this user may still write to dir's file system.
func freeSpace(dir string) (uint64, error) {
	var disk unix.Statfs_t
	err := unix.Statfs(dir, &disk)
	return uint64(disk.Bavail) * uint64(disk.Bsize), err
}

// writable returns an error unless this user may create files in dir.
func writable(dir string) error { return unix.Access(dir, unix.W_OK|unix.X_OK) }
