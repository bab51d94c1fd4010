package views

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"

	"switchyard/internal/domain"
)

// writtenFile is the text of a file that a tool writes, if its input has only that and the file's name.
func writtenFile(tool *domain.ToolUse) (file, text string, ok bool) {
	var members map[string]json.RawMessage
	f := fieldsOf(tool)
	if f.File == "" || f.Content == nil || json.Unmarshal(tool.Input, &members) != nil || len(members) != 2 {
		return "", "", false
	}
	return f.File, *f.Content, true
}

// length is the length of a text: "4,812 lines, 212 kB".
func length(text string) string {
	lines := strings.Count(strings.TrimSuffix(text, "\n"), "\n") + 1
	return domain.Count(lines, "line", "lines") + ", " + thousands((len(text)+999)/1000) + " kB"
}

// input is a tool's input as text: a lone command or file text as it is, other inputs as JSON.
func (q QuestionProps) input() string {
	if q.Tool == nil {
		return ""
	}
	if command, _, ok := q.Tool.Command(); ok {
		return command
	}
	if _, text, ok := writtenFile(q.Tool); ok {
		return text
	}
	var b bytes.Buffer
	if json.Indent(&b, q.Tool.Input, "", "  ") != nil {
		return string(q.Tool.Input)
	}
	return jsonText.ReplaceAllStringFunc(b.String(), readable)
}

var jsonText = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

// readable writes JSON text with its line ends, and without unnecessary escapes.
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

const (
	// foldInput and foldBytes limit the text that is shown unfolded; of a longer one its head and tail are.
	foldInput, foldBytes = 12, 1500
	headLines, tailLines = 6, 3
)

// foldText splits a long text into its head, the folded middle, and its tail; middle is "" for a short one.
func foldText(text string) (head, middle, tail string, lines int) {
	switch all := strings.SplitAfter(text, "\n"); {
	case len(all) > foldInput:
		head = domain.CutBytes(strings.Join(all[:headLines], ""), foldBytes)
		if tail = strings.Join(all[len(all)-tailLines:], ""); len(tail) > foldBytes {
			tail = ""
		}
	case len(text) > foldBytes:
		head = domain.CutBytes(text, foldBytes/2)
	default:
		return text, "", "", 0
	}
	middle = text[len(head) : len(text)-len(tail)]
	return head, middle, tail, strings.Count(middle, "\n") + 1
}
