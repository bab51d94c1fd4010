package views

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"switchyard/internal/domain"
)

// length says how long an input is that is shown cut, "" for one that is shown whole.
func (q QuestionProps) length() string {
	if q.Tool == nil || len(toolInput(q.Tool)) <= domain.MaxDetail {
		return ""
	}
	return fmt.Sprintf("Only the first 64 KiB are shown, of %s KiB.", thousands((len(q.Tool.Input)+1023)>>10))
}

func toolInput(tool *domain.ToolUse) string {
	if command, _, ok := tool.Command(); ok {
		return command
	}
	var b bytes.Buffer
	if json.Indent(&b, tool.Input, "", "  ") != nil {
		return string(tool.Input)
	}
	return jsonText.ReplaceAllStringFunc(b.String(), readable)
}

var jsonText = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

// readable writes a text in JSON with its line ends, and without escapes of what can be read as it is.
func readable(encoded string) string {
	var text string
	if json.Unmarshal([]byte(encoded), &text) != nil || strings.ContainsRune(text, '\uFFFD') {
		return encoded
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		encoded := string(domain.EncodeJSON(line))
		lines[i] = encoded[1 : len(encoded)-1] // without its quotes
	}
	return `"` + strings.Join(lines, "\\n\n") + `"`
}
