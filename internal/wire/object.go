package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"switchyard/internal/domain"
)

// ErrNoObject is returned for JSON that is not an object.
var ErrNoObject = errors.New("is not a JSON object")

// Object is a JSON object that keeps the order and the text of its members, so that those of other programs are
// written back as they were.
type Object []member

type member struct {
	key   string
	text  []byte // the key as JSON
	value json.RawMessage
}

// ParseObject returns ErrNoObject for anything but one JSON object.
func ParseObject(data []byte) (Object, error) {
	if !utf8.Valid(data) || !json.Valid(data) || bytes.TrimSpace(data)[0] != '{' {
		return nil, ErrNoObject
	}
	return members(data), nil
}

// members returns the members of an object that is known to be valid, nil for any other value.
func members(object []byte) (o Object) {
	if object = bytes.TrimSpace(object); object[0] != '{' {
		return nil
	}
	o = make(Object, 0, 8)
	for rest, more := begin(object, '{'); more; more = len(rest) > 1 {
		var m member
		m.text, rest = cutValue(rest)
		m.value, rest = cutValue(rest)
		if m.key = string(m.text[1 : len(m.text)-1]); strings.Contains(m.key, `\`) {
			_ = json.Unmarshal(m.text, &m.key) // a valid string has no errors
		}
		o = append(o, m)
	}
	return o
}

// elements returns the elements of a list that is known to be valid, nil for any other value.
func elements(list []byte) (all [][]byte) {
	for rest, more := begin(list, '['); more; more = len(rest) > 1 {
		var element []byte
		element, rest = cutValue(rest)
		all = append(all, element)
	}
	return all
}

// separators are between the values of valid JSON.
const separators = " \t\r\n,:"

// begin returns what follows the opening bracket, and whether there is anything but the closing one.
func begin(value []byte, bracket byte) (rest []byte, more bool) {
	value = bytes.Trim(value, separators)
	if len(value) < 2 || value[0] != bracket {
		return nil, false
	}
	rest = bytes.TrimLeft(value[1:], separators)
	return rest, len(rest) > 1
}

// cutValue returns the value at the beginning of valid JSON, and what follows it.
func cutValue(data []byte) (value, rest []byte) {
	end, depth := 0, 0
	for end < len(data) {
		c := data[end]
		if depth == 0 && (c == '}' || c == ']' || strings.IndexByte(separators, c) >= 0) {
			break // the end of a number or a literal
		}
		end++
		switch c {
		case '"':
			for ; data[end] != '"'; end++ {
				if data[end] == '\\' {
					end++
				}
			}
			end++
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		default:
			continue
		}
		if depth == 0 {
			break
		}
	}
	return data[:end], bytes.TrimLeft(data[end:], separators)
}

// Get returns the value of key, nil when there is none. The last of several wins, as in most JSON parsers.
func (o Object) Get(key string) json.RawMessage {
	for _, m := range slices.Backward(o) {
		if m.key == key {
			return m.value
		}
	}
	return nil
}

// Set returns o with value as the only one under key, at the position of the first, else at the end. o must not be used
// afterwards.
func (o Object) Set(key string, value json.RawMessage) Object {
	at := slices.IndexFunc(o, func(m member) bool { return m.key == key })
	if at < 0 {
		return append(o, member{key, strconv.AppendQuote(nil, key), value})
	}
	o[at].value = value
	return append(o[:at+1], o[at+1:].Remove(key)...)
}

// Remove returns o without the values under key. o must not be used afterwards.
func (o Object) Remove(key string) Object {
	return slices.DeleteFunc(o, func(m member) bool { return m.key == key })
}

func (o Object) Encode() []byte {
	size := 2
	for _, m := range o {
		size += len(m.text) + len(m.value) + 2
	}
	b := append(make([]byte, 0, size), '{')
	for i, m := range o {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(b, m.text...), ':'), m.value...)
	}
	return append(b, '}')
}

// WithTimes returns raw, the stages as their project server sent them, with the items' times replaced by those in
// dated. Everything else is kept, and all of what is not valid.
func WithTimes(raw json.RawMessage, dated []domain.Stage) json.RawMessage {
	if !json.Valid(raw) {
		return raw
	}
	return eachElement(raw, len(dated), func(i int, stage Object) Object {
		text, items := stage.Get("items"), dated[i].Items
		if text == nil { // another case: encoding/json accepts it
			return stage
		}
		return stage.Set("items", eachElement(text, len(items), func(j int, item Object) Object {
			blockedSince := []byte("null")
			if items[j].Blocked != "" {
				blockedSince = milliseconds(items[j].TroubleSince())
			}
			return item.Set("since_ms", milliseconds(items[j].Since)).Set("blocked_since_ms", blockedSince)
		}))
	})
}

// eachElement changes the first n elements of a list, and leaves alone what is no list or object.
func eachElement(list json.RawMessage, n int, change func(i int, element Object) Object) json.RawMessage {
	all := elements(list)
	if all == nil {
		return list
	}
	for i, element := range all[:min(n, len(all))] {
		if o := members(element); o != nil {
			all[i] = change(i, o).Encode()
		}
	}
	return slices.Concat([]byte("["), bytes.Join(all, []byte(",")), []byte("]"))
}

func milliseconds(t time.Time) []byte { return strconv.AppendInt(nil, t.UnixMilli(), 10) }
