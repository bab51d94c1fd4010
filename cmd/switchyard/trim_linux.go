package main

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// unmapProgram drops the pages of the program file, its code and constants, from this process's memory. Those that are needed
// again are faulted in from the page cache, 64 KiB in a microsecond or two; the half that only the start needed is no longer
// counted, and the system may reclaim it.
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
			continue // never a writable mapping, whose content would be lost
		}
		from, to, _ := strings.Cut(fields[0], "-")
		start, err1 := strconv.ParseUint(from, 16, 64)
		end, err2 := strconv.ParseUint(to, 16, 64)
		if err1 == nil && err2 == nil {
			_, _, _ = unix.Syscall(unix.SYS_MADVISE, uintptr(start), uintptr(end-start), unix.MADV_DONTNEED) // a failure does no harm
		}
	}
}
