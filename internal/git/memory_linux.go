package git

import "golang.org/x/sys/unix"

// limitMemory ends the process when it allocates more than that. Without a limit git still works.
func limitMemory(pid int, most uint64) {
	_ = unix.Prlimit(pid, unix.RLIMIT_DATA, &unix.Rlimit{Cur: most, Max: most}, nil)
}
