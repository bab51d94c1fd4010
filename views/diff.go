package views

import (
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/a-h/templ"
)

// diffLine is a line of a file's diff. Its kind is ' ', '+' or '-'; '@' at the start of a hunk, with its context as
// text; or '\\' for git's remark on the line above.
type diffLine struct {
	kind     byte
	old, now int // numbers, 0 for none
	text     string
	from, to int // the part of the text that its pair lacks
}

var hunkForm = regexp.MustCompile(`^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@ ?(.*)`)

// diffLines reads the hunks of a file's diff.
func diffLines(text string) (lines []diffLine) {
	old, now, inHunk := 0, 0, false
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if hunk := hunkForm.FindStringSubmatch(line); hunk != nil {
			old, _ = strconv.Atoi(hunk[1])
			now, _ = strconv.Atoi(hunk[2])
			lines, inHunk = append(lines, diffLine{kind: '@', old: old, now: now, text: hunk[3]}), true
			continue
		}
		if inHunk = inHunk && !strings.HasPrefix(line, "diff --git "); !inHunk || line == "" {
			continue
		}
		l := diffLine{kind: line[0], text: line[1:]}
		if l.kind == ' ' || l.kind == '-' {
			l.old = old
			old++
		}
		if l.kind == ' ' || l.kind == '+' {
			l.now = now
			now++
		}
		lines = append(lines, l)
	}
	markPairs(lines)
	return lines
}

// markPairs finds the differences between removed lines and the added ones that replace them.
func markPairs(lines []diffLine) {
	for i := 0; i < len(lines); i++ {
		removed := i
		for i < len(lines) && lines[i].kind == '-' {
			i++
		}
		added := i
		for i < len(lines) && lines[i].kind == '+' {
			i++
		}
		for k := range min(added-removed, i-added) {
			markMiddle(&lines[removed+k], &lines[added+k])
		}
	}
}

// markMiddle marks what differs between the common beginning and end of two lines, if they have one.
func markMiddle(a, b *diffLine) {
	from, short := 0, min(len(a.text), len(b.text))
	for from < short && a.text[from] == b.text[from] {
		from++
	}
	for from > 0 && from < len(a.text) && !utf8.RuneStart(a.text[from]) {
		from--
	}
	end := 0
	for end < short-from && a.text[len(a.text)-1-end] == b.text[len(b.text)-1-end] {
		end++
	}
	for end > 0 && !utf8.RuneStart(a.text[len(a.text)-end]) {
		end--
	}
	if strings.TrimSpace(a.text[:from]+a.text[len(a.text)-end:]) != "" {
		a.from, a.to, b.from, b.to = from, len(a.text)-end, from, len(b.text)-end
	}
}

// maxDiffLines is how many lines of a file are shown.
const maxDiffLines = 5000

// diffElements are the elements of lines by kind.
var diffElements = map[byte]string{' ': "span", '+': "ins", '-': "del", '\\': "i"}

// diffHTML is a file's diff as HTML. Each line begins with its sign, so that copying gives git's text.
func diffHTML(lines []diffLine) string {
	var b strings.Builder
	b.WriteString(`<pre class="diff">`)
	for _, l := range lines[:min(len(lines), maxDiffLines)] {
		if l.kind == '@' {
			b.WriteString(`<b><span>line ` + strconv.Itoa(max(l.now, 1)) + "</span> " + templ.EscapeString(l.text) + "</b>")
			continue
		}
		element := diffElements[l.kind]
		if element == "" {
			continue
		}
		b.WriteString("<" + element + lineNumber("o", l.old) + lineNumber("n", l.now) + ">" + string(l.kind))
		b.WriteString(templ.EscapeString(l.text[:l.from]))
		if l.to > l.from {
			b.WriteString("<mark>" + templ.EscapeString(l.text[l.from:l.to]) + "</mark>")
		}
		b.WriteString(templ.EscapeString(l.text[max(l.from, l.to):]) + "\n</" + element + ">")
	}
	b.WriteString("</pre>")
	return b.String()
}

// lineNumber is the attribute with a line's number, "" for none.
func lineNumber(name string, n int) string {
	if n == 0 {
		return ""
	}
	return " data-" + name + `="` + strconv.Itoa(n) + `"`
}
