package agentrun

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"unicode"
)

const (
	tailBytes = 2048     // of output are kept
	tailLines = 10       // of those bytes are reported
	maxLine   = 64 << 10 // of a line are looked at as JSON
)

// tail is the end of a command's output.
type tail struct {
	mu   sync.Mutex
	end  []byte // whole lines
	line []byte // that has not ended, as far as it is looked at
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for rest := p; len(rest) > 0; {
		line, after, ended := bytes.Cut(rest, []byte("\n"))
		rest = after
		if len(t.line) > maxLine { // too long to be understood
			t.keep(t.line)
			t.line = t.line[:0]
		}
		if t.line = append(t.line, line...); ended {
			t.keep(append(messageText(t.line), '\n'))
			t.line = t.line[:0]
		}
	}
	return len(p), nil
}

func (t *tail) keep(text []byte) {
	t.end = append(t.end, text[max(0, len(text)-tailBytes):]...)
	t.end = append(t.end[:0], t.end[max(0, len(t.end)-tailBytes):]...)
}

// messageText returns the text of a line that is a coding agent's message in JSON (Claude Code's stream-json, the
// output of codex exec --json), any other line as it is.
func messageText(line []byte) []byte {
	var m struct {
		Type, Subtype, Result string
		Message               struct {
			Content []struct {
				Type, Text, Name string
			}
		}
		Item struct{ Type, Text, Command string }
	}
	if !bytes.HasPrefix(line, []byte("{")) || json.Unmarshal(line, &m) != nil || m.Type == "" {
		return line
	}
	said := []string{m.Result, m.Item.Text, m.Item.Command}
	for _, c := range m.Message.Content {
		said = append(said, c.Text)
		if c.Type == "tool_use" {
			said = append(said, "uses "+c.Name)
		}
	}
	said = slices.DeleteFunc(said, func(text string) bool { return text == "" })
	switch {
	case len(said) > 0:
		return []byte(strings.Join(said, "\n"))
	case m.Type == "system", m.Type == "user": // the start of a session; what a tool has returned
		return []byte(strings.TrimSpace(m.Type + " " + m.Subtype))
	}
	return line
}

// String returns the last lines as plain text, without control characters.
func (t *tail) String() string {
	t.mu.Lock()
	text := string(t.end) + string(t.line[max(0, len(t.line)-tailBytes):])
	t.mu.Unlock()
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text[max(0, len(text)-tailBytes):], ""))
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-tailLines):], "\n")
}
