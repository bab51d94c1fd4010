package agentrun

import (
	"strings"
	"sync"
	"unicode"
)

const (
	tailBytes = 2048 // of output are kept
	tailLines = 10   // of those bytes are reported
)

// tail keeps the last tailBytes written to it.
type tail struct {
	mu  sync.Mutex
	end []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.end = append(t.end, p[max(0, len(p)-tailBytes):]...)
	t.end = append(t.end[:0], t.end[max(0, len(t.end)-tailBytes):]...)
	return len(p), nil
}

// String returns the last lines as plain text, without control characters.
func (t *tail) String() string {
	t.mu.Lock()
	text := string(t.end)
	t.mu.Unlock()
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-tailLines):], "\n")
}
