package wire

import (
	"bytes"
	"encoding/json"
	"strconv"

	"switchyard/internal/domain"
)

// WithTimes returns stages as their project server sent them, with the times of their items as they are in dated. All else
// stays as it came, byte for byte. Stages of which that would make something else than JSON stay as they are: other projects
// are in the same document.
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
	return bytes.Clone(append(w.out, w.in[w.copied:]...)) // which is no larger than it must be: it is kept
}

// timesWriter goes through JSON that has been decoded once, so that it is known to be valid.
type timesWriter struct {
	in     []byte
	at     int
	out    []byte
	copied int // how much of in is accounted for in out
}

// copy copies what is before at.
func (w *timesWriter) copy() {
	w.out = append(w.out, w.in[w.copied:w.at]...)
	w.copied = w.at
}

// drop leaves out the value that begins here, instead of which something is to be appended.
func (w *timesWriter) drop() {
	w.copy()
	w.value()
	w.copied = w.at
}

// next passes a character, if there is one.
func (w *timesWriter) next() { w.at = min(w.at+1, len(w.in)) }

// value passes a value.
func (w *timesWriter) value() { w.at = w.end() }

// end returns the end of the value that begins here, at most that of the text.
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
				return i // of a number or a word
			}
		case ',':
			if depth == 0 {
				return i
			}
		}
	}
	return len(w.in)
}

// list passes a list, whose elements are passed by element.
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

// object passes an object, whose values are passed by value. What more appends, each with a comma before it, comes last.
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

// item copies an item with the times that are known now.
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
			if any { // else it is the first
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

// open passes the beginning of a list or an object. What is neither is passed as a whole.
func (w *timesWriter) open(bracket byte) bool {
	w.skipSpace()
	if w.at == len(w.in) || w.in[w.at] != bracket {
		w.value()
		return false
	}
	w.next()
	return true
}

// skipSpace passes white space.
func (w *timesWriter) skipSpace() {
	for w.at < len(w.in) && (w.in[w.at] == ' ' || w.in[w.at] == '\n' || w.in[w.at] == '\t' || w.in[w.at] == '\r') {
		w.at++
	}
}
