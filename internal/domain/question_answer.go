package domain

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// ParseAnswer reads an answer as people write it: the longest option that the message begins with, or else an option's
// number, and then a text; for a question without options the whole message. It returns false for anything else.
func (q *Question) ParseAnswer(message string) (value, text string, ok bool) {
	message = strings.TrimSpace(message)
	if q.Kind == QuestionText {
		return message, "", message != ""
	}
	for _, option := range q.Options {
		if len(option) <= len(value) || len(message) < len(option) || !strings.EqualFold(message[:len(option)], option) {
			continue
		}
		rest := message[len(option):]
		if trimmed := strings.TrimLeft(rest, " \t\r\n\u00a0,.:;–—-"); rest == "" || trimmed != rest {
			value, text, ok = option, trimmed, true
		}
	}
	if ok {
		return value, text, true
	}
	first, rest, _ := strings.Cut(strings.Join(strings.Fields(message), " "), " ")
	if value, ok = q.Option(strings.TrimRight(first, ".:,)")); ok {
		return value, rest, true
	}
	return "", "", false
}

// Option returns the option with a number, which begins at 1.
func (q *Question) Option(number string) (value string, ok bool) {
	n, err := strconv.Atoi(number)
	if err != nil || n < 1 || n > len(q.Options) {
		return "", false
	}
	return q.Options[n-1], true
}

// Expose returns text with each hidden character, which could make it look like another text, as U+XXXX, and how many
// there are. Tabs and line ends stay.
func Expose(text string) (shown string, hidden int) {
	if !strings.ContainsFunc(text, IsHidden) {
		return text, 0
	}
	var b strings.Builder
	for _, r := range text {
		if !IsHidden(r) {
			b.WriteRune(r)
			continue
		}
		hidden++
		fmt.Fprintf(&b, "U+%04X", r)
	}
	return b.String(), hidden
}

// IsHidden reports whether a character shows nothing of its own: a control or format character, or a separator of
// lines that is not usual, or one for private use.
func IsHidden(r rune) bool {
	return r != '\n' && r != '\t' && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co)
}
