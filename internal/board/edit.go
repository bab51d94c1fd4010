package board

import (
	"bytes"
	"errors"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"
)

// errNotEditable says that front matter is written in a way that cannot be changed without changing more than asked.
var errNotEditable = errors.New("the front matter is written in a way that can only be changed by hand")

// setting is what a key of the front matter is to be: YAML in one line, or "" for none.
type setting struct{ key, value string }

// edit returns content with these keys as they are to be, and every other byte as it was. A file without front matter
// gets one. The result is parsed again: errNotEditable is returned when it says anything else than it should.
func edit(content []byte, settings []setting) ([]byte, error) {
	d := splitDocument(content)
	front, err := parseFrontMatter(d)
	if err != nil {
		return nil, err
	}
	newline := lineEnd(content)
	if !d.closed {
		d = document{before: slices.Concat(d.before, []byte("---"+newline)), body: slices.Concat([]byte("---"+newline), d.body)}
	} else {
		d.body = content[len(d.before)+len(d.head):]
	}
	if front.mapping != nil && front.mapping.Style&yaml.FlowStyle != 0 {
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

// lineEnd is how the first line of content ends.
func lineEnd(content []byte) string {
	if line, _, found := bytes.Cut(content, []byte("\n")); found && bytes.HasSuffix(line, []byte("\r")) {
		return "\r\n"
	}
	return "\n"
}

// editHead applies settings to head, which front was parsed from. New keys go behind the last one, or to the very end.
func editHead(head []byte, front frontMatter, settings []setting, newline string, appendLast bool) []byte {
	type replacement struct {
		start, end int
		text       string
	}
	var replacements []replacement
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
			replacements = append(replacements, replacement{entries[i].start, entries[i].end, ""})
		case i >= 0:
			start, end, space := text.value(entries[i])
			replacements = append(replacements, replacement{start, end, space + s.value})
		case s.value != "":
			replacements = append(replacements, replacement{end, end, indent + s.key + ": " + s.value + newline})
		}
	}
	slices.SortStableFunc(replacements, func(a, b replacement) int { return a.start - b.start })
	var edited []byte
	at := 0
	for _, r := range replacements {
		if r.start < at { // the entry that new keys were to follow is removed itself
			r.start, r.end = at, max(at, r.end)
		}
		edited = append(append(edited, head[at:r.start]...), r.text...)
		at = r.end
	}
	return append(edited, head[at:]...)
}

// says reports whether head has the settings, and all other keys as in front, in the same order.
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

// others are the keys that no setting names, each with its value.
func others(front frontMatter, settings []setting) []string {
	var list []string
	if front.mapping == nil {
		return nil
	}
	for i := 0; i < len(front.mapping.Content); i += 2 {
		key := resolve(front.mapping.Content[i]).Value
		if !slices.ContainsFunc(settings, func(s setting) bool { return s.key == key }) {
			list = append(list, key, string(appendNode(nil, front.mapping.Content[i+1])))
		}
	}
	return list
}

// yamlString writes text as a YAML string in one line: as it is where that is safe, else in double quotes.
func yamlString(text string) string {
	var node yaml.Node
	plain := text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		return r != ' ' && !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_./()-", r)
	})
	if plain && unicode.IsLetter([]rune(text)[0]) && yaml.Unmarshal([]byte(text), &node) == nil && node.Kind != 0 {
		value := node.Content[0]
		var is bool // yes, no, on and off are booleans to others
		if value.Kind == yaml.ScalarNode && value.ShortTag() == "!!str" && value.Value == text && value.Decode(&is) != nil && len(text) > 1 {
			return text
		}
	}
	return strconv.Quote(text) // its escapes are among YAML's
}
