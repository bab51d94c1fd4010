package agentrun

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// hideMemory keeps the user's other processes from reading this one's memory, including its environment. It also
// prevents core dumps and attaching debuggers.
func hideMemory() error {
	return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
}

// startOf returns when a process started: the id of the boot, and the clock ticks since.
func startOf(pid int) (string, error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", err
	}
	fields, err := stat(strconv.Itoa(pid))
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(boot)) + "/" + fields[statStart], nil
}

// Indexes of the fields of /proc/PID/stat after the program's name, which may contain anything; see proc(5).
const (
	statState = 0
	statGroup = 2
	statStart = 19
)

func stat(pid string) ([]string, error) {
	data, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return nil, err
	}
	fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	if len(fields) <= statStart {
		return nil, errors.New("/proc/" + pid + "/stat is too short")
	}
	return fields, nil
}

// groupRuns reports whether any process of the group still runs. Zombies do not count.
func groupRuns(pgid int) bool {
	return syscall.Kill(-pgid, 0) != syscall.ESRCH && anyOfGroup(pgid, func(string) bool { return true })
}

// groupHasVariable reports whether a running process of the group has the given line in its environment.
func groupHasVariable(pgid int, line string) bool {
	return anyOfGroup(pgid, func(pid string) bool {
		environment, err := os.ReadFile("/proc/" + pid + "/environ")
		return err == nil && bytes.Contains(append([]byte{0}, environment...), []byte("\x00"+line+"\x00"))
	})
}

func anyOfGroup(pgid int, match func(pid string) bool) bool {
	group := strconv.Itoa(pgid)
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return true // unknown: it may still run
	}
	for _, e := range entries {
		if e.Name()[0] < '0' || e.Name()[0] > '9' {
			continue
		}
		fields, err := stat(e.Name())
		if err == nil && fields[statGroup] == group && fields[statState] != "Z" && fields[statState] != "X" &&
			match(e.Name()) {
			return true
		}
	}
	return false
}
