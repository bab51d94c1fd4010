package console

import (
	"fmt"
	"strings"

	"switchyard/internal/domain"
)

// shownIn are the attributes that people see or hear. Programs need the values of others as they are.
var shownIn = []string{" title=", " aria-label=", " alt="}

// visible returns HTML in which invisible characters are replaced by their codes in every visible text, whoever it is
// from: they could make it look like another one. What is typed into a form stays as it is.
func visible(html string) string {
	if !strings.ContainsFunc(html, isUnseen) {
		return html
	}
	var b strings.Builder
	for html != "" {
		from := strings.IndexByte(html, '<')
		if from < 0 {
			from = len(html)
		}
		writeShown(&b, html[:from])
		tag, length := cutTag(html[from:])
		for rest := tag; rest != ""; {
			value, end := shownValue(rest)
			b.WriteString(rest[:value])
			writeShown(&b, rest[value:end])
			rest = rest[end:]
		}
		html = html[from+length:]
		if strings.HasPrefix(tag, "<textarea") {
			typed, _, _ := strings.Cut(html, "</textarea")
			b.WriteString(typed)
			html = html[len(typed):]
		}
	}
	return b.String()
}

// cutTag returns the tag that html begins with, and its length. A quoted value may contain the end of a tag.
func cutTag(html string) (tag string, length int) {
	quoted := false
	for i := range len(html) {
		switch html[i] {
		case '"':
			quoted = !quoted
		case '>':
			if !quoted {
				return html[:i+1], i + 1
			}
		}
	}
	return html, len(html)
}

// shownValue returns where the first visible value in a part of a tag begins and ends, its end if there is none.
func shownValue(tag string) (from, to int) {
	from, to = len(tag), len(tag)
	for _, attribute := range shownIn {
		at := strings.Index(tag, attribute+`"`)
		if at < 0 || at >= from {
			continue
		}
		from = at + len(attribute) + 1
		to = len(tag)
		if end := strings.IndexByte(tag[from:], '"'); end >= 0 {
			to = from + end
		}
	}
	return from, to
}

func writeShown(b *strings.Builder, text string) {
	for _, r := range text {
		if isUnseen(r) {
			fmt.Fprintf(b, "U+%04X", r)
		} else {
			b.WriteRune(r)
		}
	}
}

// isUnseen reports whether a character of a page is hidden, other than those between lines, and those that join letters
// or emoji or break words, which scripts need.
func isUnseen(r rune) bool {
	return r >= 0x7f && r != '\u200c' && r != '\u200d' && r != '\u00ad' && domain.IsHidden(r) ||
		r < ' ' && r != '\n' && r != '\r' && r != '\t'
}
