package git

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"
	"unicode"
)

// maxOutputTail and maxLines are how much is kept of a command's output, from its end.
const maxOutputTail, maxLines = 8 << 10, 40

// outputTail is the end of a command's output.
type outputTail struct{ end []byte }

func (s *outputTail) Write(p []byte) (int, error) {
	s.end = append(s.end, p[max(0, len(p)-maxOutputTail):]...)
	s.end = append(s.end[:0], s.end[max(0, len(s.end)-maxOutputTail):]...)
	return len(p), nil
}

// String returns the last lines, without control characters.
func (s *outputTail) String() string {
	text := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, strings.ToValidUTF8(string(s.end), ""))
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-maxLines):], "\n")
}

// runForOutput runs a command and returns the end of its output. Whatever it started ends with it, and with ctx.
func runForOutput(cmd *exec.Cmd) (words string, err error) {
	runtime.LockOSThread() // the command ends with it
	defer runtime.UnlockOSThread()
	var end outputTail
	inGroup(cmd)
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &end, &end, time.Second
	err = cmd.Run()
	if cmd.Process != nil {
		_ = killGroup(cmd) // it may have ended
	}
	if errors.Is(err, exec.ErrWaitDelay) { // a process that it left behind held its output open
		err = nil
	}
	return end.String(), err
}

// others returns the environment without our variables and git's.
func others() []string {
	return slices.DeleteFunc(os.Environ(), func(line string) bool {
		return strings.HasPrefix(line, "SWITCHYARD_") || strings.HasPrefix(line, "GIT_")
	})
}
