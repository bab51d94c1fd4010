package wire

import (
	"bytes"
	"iter"

	"switchyard/internal/jsonscan"
)

// What follows reads text that is known to be valid JSON: it was decoded before.

const blanks = " \t\r\n"

// opens reports whether text is the list or object that begins with bracket.
func opens(text []byte, bracket byte) bool {
	text = bytes.TrimLeft(text, blanks)
	return len(text) > 0 && text[0] == bracket
}

// entries yields the texts of a list's elements, with nil, or of an object's keys and values.
func entries(text []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(key, value []byte) bool) {
		isObject := opens(text, '{')
		rest := bytes.TrimLeft(text, blanks)[1:]
		for {
			rest = bytes.TrimLeft(rest, blanks+",")
			if len(rest) == 0 || rest[0] == ']' || rest[0] == '}' {
				return
			}
			var key []byte
			if isObject {
				end := jsonscan.ValueEnd(rest, 0)
				key, rest = rest[:end], bytes.TrimLeft(rest[end:], blanks+":")
			}
			end := jsonscan.ValueEnd(rest, 0)
			if !yield(key, rest[:end:end]) {
				return
			}
			rest = rest[end:]
		}
	}
}
