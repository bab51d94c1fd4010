//go:build unix

package main

import (
	"math"
	"syscall"
)

// descriptorLimit returns how many files and connections this process may have open.
func descriptorLimit() uint64 {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return math.MaxUint64
	}
	return limit.Cur
}
