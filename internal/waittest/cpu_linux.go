package waittest

import (
	"time"

	"golang.org/x/sys/unix"
)

// CPUTime returns the CPU time that this process has used.
func CPUTime() time.Duration { return used(unix.RUSAGE_SELF) }

// ThreadTime returns the CPU time that this thread has used.
func ThreadTime() time.Duration { return used(unix.RUSAGE_THREAD) }

func used(who int) time.Duration {
	var usage unix.Rusage
	if err := unix.Getrusage(who, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
