package wire

import (
	"bytes"
	"encoding/json"
	"strconv"

	"switchyard/internal/domain"
)

// WithTimes returns raw, the stages as their project server sent them, with the items' times replaced by those in
// dated. Everything else is kept byte for byte. If the result would not be valid JSON, raw is returned unchanged, since
// it becomes part of a document with other projects.
func WithTimes(raw json.RawMessage, dated []domain.Stage) (result json.RawMessage) {
	defer func() {
		if recover() != nil || !json.Valid(result) {
			result = raw
		}
	}()
	var items int
	for _, stage := range dated {
		items += len(stage.Items)
	}
	w := timesWriter{in: raw, out: make([]byte, 0, len(raw)+64*items)}
	stage := 0
	w.list(func() {
		if stage == len(dated) {
			w.value()
			return
		}
		now := dated[stage].Items
		stage++
		w.object(func(key []byte) {
			if string(key) != `"items"` {
				w.value()
				return
			}
			item := 0
			w.list(func() {
				if item == len(now) {
					w.value()
					return
				}
				w.item(&now[item])
				item++
			})
		}, func() {})
	})
	return bytes.Clone(append(w.out, w.in[w.copied:]...)) // without spare capacity, since it is kept
}

// timesWriter scans JSON that has been decoded before and so is known to be valid.
type timesWriter struct {
	in     []byte
	at     int
	out    []byte
	copied int // how much of in has been copied to out or dropped
}

// copy copies the input up to at.
func (w *timesWriter) copy() {
	w.out = append(w.out, w.in[w.copied:w.at]...)
	w.copied = w.at
}

// drop skips the value that begins here, so that a replacement can be appended to out.
func (w *timesWriter) drop() {
	w.copy()
	w.value()
	w.copied = w.at
}

// next skips a character, if there is one.
func (w *timesWriter) next() { w.at = min(w.at+1, len(w.in)) }

// value skips a value.
func (w *timesWriter) value() { w.at = w.end() }

// end returns the end of the value that begins here, at most the end of the input.
func (w *timesWriter) end() int {
	depth := 0
	for i := w.at; i < len(w.in); i++ {
		switch w.in[i] {
		case '"':
			for i++; i < len(w.in) && w.in[i] != '"'; i++ {
				if w.in[i] == '\\' {
					i++
				}
			}
			if depth == 0 {
				return min(i+1, len(w.in))
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
			if depth < 0 {
				return i // the end of a number or a literal
			}
		case ',':
			if depth == 0 {
				return i
			}
		}
	}
	return len(w.in)
}

// list skips an array, calling element to skip each element.
func (w *timesWriter) list(element func()) {
	if !w.open('[') {
		return
	}
	for w.skipSpace(); w.at < len(w.in) && w.in[w.at] != ']'; w.skipSpace() {
		element()
		if w.skipSpace(); w.at < len(w.in) && w.in[w.at] == ',' {
			w.next()
		}
	}
	w.next()
}

// object skips an object, calling value to skip each value. At its end it calls more, which may append members, each
// preceded by a comma.
func (w *timesWriter) object(value func(key []byte), more func()) {
	if !w.open('{') {
		return
	}
	for w.skipSpace(); w.at < len(w.in) && w.in[w.at] != '}'; w.skipSpace() {
		key := w.in[w.at:w.end()]
		w.value()
		w.skipSpace()
		w.next() // the colon
		w.skipSpace()
		value(key)
		if w.skipSpace(); w.at < len(w.in) && w.in[w.at] == ',' {
			w.next()
		}
	}
	more()
	w.next()
}

// item copies an item with its new times.
func (w *timesWriter) item(now *domain.Item) {
	var since, blockedSince, any bool
	w.object(func(key []byte) {
		any = true
		switch string(key) {
		case `"since_ms"`:
			since = true
			w.drop()
			w.out = strconv.AppendInt(w.out, now.Since.UnixMilli(), 10)
		case `"blocked_since_ms"`:
			blockedSince = true
			w.drop()
			w.appendBlockedSince(now)
		default:
			w.value()
		}
	}, func() {
		w.copy()
		if !since {
			if any { // not the first
				w.out = append(w.out, ',')
			}
			w.out = strconv.AppendInt(append(w.out, `"since_ms":`...), now.Since.UnixMilli(), 10)
		}
		if !blockedSince {
			w.out = append(w.out, `,"blocked_since_ms":`...)
			w.appendBlockedSince(now)
		}
	})
}

func (w *timesWriter) appendBlockedSince(now *domain.Item) {
	if now.Blocked == "" {
		w.out = append(w.out, "null"...)
		return
	}
	w.out = strconv.AppendInt(w.out, now.TroubleSince().UnixMilli(), 10)
}

// open skips the opening bracket of an array or object. It skips any other value as a whole and returns false.
func (w *timesWriter) open(bracket byte) bool {
	w.skipSpace()
	if w.at == len(w.in) || w.in[w.at] != bracket {
		w.value()
		return false
	}
	w.next()
	return true
}

// skipSpace skips white space.
func (w *timesWriter) skipSpace() {
	for w.at < len(w.in) && (w.in[w.at] == ' ' || w.in[w.at] == '\n' || w.in[w.at] == '\t' || w.in[w.at] == '\r') {
		w.at++
	}
}
