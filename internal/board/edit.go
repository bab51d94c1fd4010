package board

import (
	"bytes"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// errNotEditable says that front matter cannot be edited without changing other keys, because of how it is written.
var errNotEditable = errors.New("the front matter is written in a way that can only be changed by hand")

// setting is a key of the front matter with its new value: YAML on one line, or "" to remove the key.
type setting struct{ key, value string }

// edit returns content with the settings applied and every other byte unchanged. Front matter is added if there is
// none. The result is parsed again: if it is not what was intended, edit returns errNotEditable.
func edit(content []byte, settings []setting) ([]byte, error) {
	d := splitDocument(content)
	front, err := parseFrontMatter(d)
	if err != nil {
		return nil, err
	}
	newline := lineEnd(content)
	if !d.closed {
		d = document{
			before: []byte("---" + newline),
			body:   slices.Concat([]byte("---"+newline), d.body),
		}
	} else {
		d.body = content[len(d.before)+len(d.head):]
	}
	if front.Style&yaml.FlowStyle != 0 {
		return nil, errNotEditable
	}
	for _, appendLast := range []bool{false, true} {
		head := editHead(d.head, front, settings, newline, appendLast)
		if says(head, front, settings) {
			return slices.Concat(d.before, head, d.body), nil
		}
	}
	return nil, errNotEditable
}

func lineEnd(content []byte) string {
	if line, _, found := bytes.Cut(content, []byte("\n")); found && bytes.HasSuffix(line, []byte("\r")) {
		return "\r\n"
	}
	return "\n"
}

// editHead applies settings to head, from which front was parsed. New keys go after the last one, or to the very end.
func editHead(head []byte, front frontMatter, settings []setting, newline string, appendLast bool) []byte {
	var edits []textEdit
	text := newYAMLText(head)
	entries := text.entries(front)
	end, indent := len(head), ""
	if len(entries) > 0 {
		last := entries[len(entries)-1]
		indent = last.indent
		if !appendLast {
			end = last.end
		}
	}
	for _, s := range settings {
		i := slices.IndexFunc(entries, func(e yamlEntry) bool { return e.key == s.key })
		switch {
		case i >= 0 && s.value == "":
			edits = append(edits, textEdit{entries[i].start, entries[i].end, nil})
		case i >= 0:
			start, end, space := text.value(entries[i])
			edits = append(edits, textEdit{start, end, []byte(space + s.value)})
		case s.value != "":
			edits = append(edits, textEdit{end, end, []byte(indent + s.key + ": " + s.value + newline)})
		}
	}
	return applyEdits(head, edits)
}

type textEdit struct {
	start, end int
	text       []byte
}

// applyEdits returns a text with parts of it replaced. Where one edit begins within another, only its remainder counts.
func applyEdits(text []byte, edits []textEdit) []byte {
	slices.SortStableFunc(edits, func(a, b textEdit) int { return a.start - b.start })
	var edited []byte
	at := 0
	for _, e := range edits {
		start := max(at, e.start)
		edited = append(append(edited, text[at:start]...), e.text...)
		at = max(start, e.end)
	}
	return append(edited, text[at:]...)
}

// says reports whether head has the settings, and all other keys of front unchanged and in the same order.
func says(head []byte, front frontMatter, settings []setting) bool {
	got, err := parseFrontMatter(document{head: head, opened: true, closed: true})
	if err != nil {
		return false
	}
	for _, s := range settings {
		var want yaml.Node
		if s.value != "" && yaml.Unmarshal([]byte(s.value), &want) != nil || !sameValue(got.get(s.key), &want) {
			return false
		}
	}
	return slices.Equal(others(got, settings), others(front, settings))
}

func sameValue(node, want *yaml.Node) bool {
	if want.Kind == yaml.DocumentNode {
		want = want.Content[0]
	}
	return node.Kind == want.Kind && node.Value == want.Value && node.ShortTag() == want.ShortTag()
}

func others(front frontMatter, settings []setting) []string {
	var list []string
	for i := 0; i < len(front.Content); i += 2 {
		key := resolve(front.Content[i]).Value
		if !slices.ContainsFunc(settings, func(s setting) bool { return s.key == key }) {
			list = append(list, key, string(appendJSON(nil, front.Content[i+1])))
		}
	}
	return list
}

// yamlString returns text as a YAML string on one line: plain if that is safe, else in double quotes.
func yamlString(text string) string {
	plain := text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		return r != ' ' && !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_./()-", r)
	})
	if plain && unicode.IsLetter([]rune(text)[0]) && len(text) > 1 && meansItself(text) {
		return text
	}
	return strconv.Quote(text) // YAML has the same escapes
}

// meansItself reports whether the text means itself as unquoted YAML, even to parsers that read yes, no, on and off as
// booleans.
func meansItself(text string) bool {
	var node yaml.Node
	var is bool
	if yaml.Unmarshal([]byte(text), &node) != nil || len(node.Content) != 1 {
		return false
	}
	value := node.Content[0]
	return value.Kind == yaml.ScalarNode && value.ShortTag() == "!!str" && value.Value == text && value.Decode(&is) != nil
}

// yamlText is YAML with the positions of its lines, as the parser counts them.
type yamlText struct {
	text  []byte
	lines []int // where each line begins, followed by the length of the text
}

// lineBreak matches what the parser counts as a line break.
var lineBreak = regexp.MustCompile("\r\n|[\n\r\u0085\u2028\u2029]")

func newYAMLText(text []byte) yamlText {
	y := yamlText{text, []int{0}}
	for _, found := range lineBreak.FindAllIndex(text, -1) {
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
	var entries []yamlEntry
	content := front.Content
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
		return text != "" && !strings.HasPrefix(line, "...") // "..." ends a document
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
