package board

import (
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// yamlText is YAML with the positions of its lines, as the parser counts them.
type yamlText struct {
	text  []byte
	lines []int // where each line begins, followed by the length of the text
}

// lineBreak matches what the parser counts as one.
var lineBreak = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("\r\n|[\n\r\u0085\u2028\u2029]") })

func newYAMLText(text []byte) yamlText {
	y := yamlText{text, []int{0}}
	for _, found := range lineBreak().FindAllIndex(text, -1) {
		y.lines = append(y.lines, found[1])
	}
	if last := y.lines[len(y.lines)-1]; last < len(text) {
		y.lines = append(y.lines, len(text))
	}
	return y
}

// line returns a line without its break. Numbers begin at 0.
func (y yamlText) line(number int) string {
	return strings.TrimRight(string(y.text[y.lines[number]:y.lines[number+1]]), "\r\n\u0085\u2028\u2029")
}

// yamlEntry is a key with its value, and the lines that they span.
type yamlEntry struct {
	key       string
	keyNode   *yaml.Node
	valueNode *yaml.Node
	indent    string
	last      int // its last line
	start     int // of its first line
	end       int // of its last line, the break included
}

// entries returns where the keys of front are in y, from which it was parsed.
func (y yamlText) entries(front frontMatter) []yamlEntry {
	if front.mapping == nil {
		return nil
	}
	var entries []yamlEntry
	content := front.mapping.Content
	for i := 0; i < len(content); i += 2 {
		first, next := content[i].Line-1, len(y.lines)-1
		if i+2 < len(content) {
			next = content[i+2].Line - 1
		}
		line := y.line(first)
		e := yamlEntry{
			key: resolve(content[i]).Value, keyNode: content[i], valueNode: content[i+1],
			indent: line[:len(line)-len(strings.TrimLeft(line, " "))],
		}
		e.last = first
		for number := first + 1; number < next; number++ {
			if y.belongs(number, e) {
				e.last = number
			}
		}
		e.start, e.end = y.lines[first], y.lines[e.last+1]
		entries = append(entries, e)
	}
	return entries
}

// belongs reports whether a line below a key is part of its value: it is neither blank nor a comment.
func (y yamlText) belongs(number int, e yamlEntry) bool {
	line := y.line(number)
	text := strings.TrimLeft(line, " \t")
	if !strings.HasPrefix(text, "#") {
		return text != "" && !strings.HasPrefix(line, "...") // which ends a document
	}
	isBlock := e.valueNode.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0
	return isBlock && len(line)-len(text) > len(e.indent)
}

// value returns where the value of an entry is, without a comment after it, and the space needed before a new value.
func (y yamlText) value(e yamlEntry) (start, end int, space string) {
	start = y.lines[e.valueNode.Line-1]
	for range e.valueNode.Column - 1 {
		_, size := utf8.DecodeRune(y.text[start:])
		start += size
	}
	line := strings.TrimRight(y.line(e.last), " \t")
	for _, comment := range []string{e.valueNode.LineComment, e.keyNode.LineComment} {
		comment = strings.TrimRight(comment, " \t")
		if comment != "" && strings.HasSuffix(line, comment) {
			line = strings.TrimRight(strings.TrimSuffix(line, comment), " \t")
			break
		}
	}
	end = max(start, y.lines[e.last]+len(line))
	if start > 0 && y.text[start-1] == ':' {
		space = " "
	}
	return start, end, space
}
