package main

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// unmapProgram lets go of the pages of the program file, its code and its constants. What is needed of them again comes back
// from the page cache by itself, 64 KiB at a fault, which takes a microsecond or two each; what the start alone needed, half of
// them, is no longer counted as this process's memory, and the system may use it for something else.
func unmapProgram() {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	maps, err := os.ReadFile("/proc/self/maps") // proc_pid_maps(5): ADDRESS-ADDRESS PERMISSIONS OFFSET DEVICE INODE PATH
	if err != nil {
		return
	}
	for line := range strings.Lines(string(maps)) {
		fields := strings.Fields(line)
		if len(fields) < 6 || !strings.HasSuffix(line, " "+program+"\n") || strings.Contains(fields[1], "w") {
			continue // above all nothing that was written to, which would be lost
		}
		from, to, _ := strings.Cut(fields[0], "-")
		start, err1 := strconv.ParseUint(from, 16, 64)
		end, err2 := strconv.ParseUint(to, 16, 64)
		if err1 == nil && err2 == nil {
			_, _, _ = unix.Syscall(unix.SYS_MADVISE, uintptr(start), uintptr(end-start), unix.MADV_DONTNEED) // refused, it has no effect
		}
	}
}
