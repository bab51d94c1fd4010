package main

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// terminal escapes what a terminal would act on, as \u and its number: control characters except tabs and line ends,
// and those that change the direction of text. Names in repositories and answers of servers are other people's text.
type terminal struct{ io.Writer }

func (t terminal) Write(text []byte) (int, error) {
	acts := func(r rune) bool {
		return unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r)
	}
	if !strings.ContainsFunc(string(text), acts) {
		return t.Writer.Write(text)
	}
	var shown []byte
	for rest := text; len(rest) > 0; {
		r, size := utf8.DecodeRune(rest)
		if acts(r) {
			shown = fmt.Appendf(shown, `\u%04x`, r)
		} else {
			shown = append(shown, rest[:size]...)
		}
		rest = rest[size:]
	}
	_, err := t.Writer.Write(shown)
	return len(text), err
}

// raw returns the writer behind a terminal, for a command whose output must not be changed.
func raw(out io.Writer) io.Writer {
	if t, ok := out.(terminal); ok {
		return t.Writer
	}
	return out
}
