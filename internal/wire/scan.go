package wire

import (
	"bytes"
	"iter"
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
				end := valueEnd(rest)
				key, rest = rest[:end], bytes.TrimLeft(rest[end:], blanks+":")
			}
			end := valueEnd(rest)
			if !yield(key, rest[:end:end]) {
				return
			}
			rest = rest[end:]
		}
	}
}

// valueEnd returns where the value ends with which text begins.
func valueEnd(text []byte) int {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
			continue
		case c == '"':
			quoted = !quoted
		case quoted:
			continue
		case c == '{' || c == '[':
			depth++
			continue
		case c == '}' || c == ']':
			if depth == 0 {
				return i // of a number or word in it
			}
			depth--
		case depth == 0 && (c == ',' || c == ':' || c <= ' '):
			return i
		default:
			continue
		}
		if depth == 0 && !quoted {
			return i + 1
		}
	}
	return len(text)
}
