package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
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
	decoder := json.NewDecoder(bytes.NewReader(data))
	_, _ = decoder.Token() // valid JSON has no errors
	o := Object{}
	for decoder.More() {
		start := decoder.InputOffset()
		key, _ := decoder.Token()
		m := member{key: key.(string), text: bytes.TrimLeft(data[start:decoder.InputOffset()], ", \t\r\n")}
		_ = decoder.Decode(&m.value)
		o = append(o, m)
	}
	return o, nil
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

// Set returns o with value as the only one under key, at the position of the first, else at the end.
func (o Object) Set(key string, value json.RawMessage) Object {
	at := slices.IndexFunc(o, func(m member) bool { return m.key == key })
	if at < 0 {
		return append(slices.Clip(o), member{key, strconv.AppendQuote(nil, key), value})
	}
	changed := o[at]
	changed.value = value
	return append(append(o[:at:at], changed), o[at+1:].Remove(key)...)
}

func (o Object) Remove(key string) Object {
	return slices.DeleteFunc(slices.Clone(o), func(m member) bool { return m.key == key })
}

func (o Object) Encode() []byte {
	members := make([][]byte, len(o))
	for i, m := range o {
		members[i] = slices.Concat(m.text, []byte(":"), m.value)
	}
	return join('{', members, '}')
}

func join(start byte, members [][]byte, end byte) []byte {
	return append(append([]byte{start}, bytes.Join(members, []byte(","))...), end)
}

// WithTimes returns raw, the stages as their project server sent them, with the items' times replaced by those in
// dated. Everything else is kept.
func WithTimes(raw json.RawMessage, dated []domain.Stage) json.RawMessage {
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
	var elements []json.RawMessage
	if json.Unmarshal(list, &elements) != nil || elements == nil {
		return list
	}
	texts := make([][]byte, len(elements))
	for i, element := range elements {
		texts[i] = element
		if o, err := ParseObject(element); err == nil && i < n {
			texts[i] = change(i, o).Encode()
		}
	}
	return join('[', texts, ']')
}

func milliseconds(t time.Time) []byte { return strconv.AppendInt(nil, t.UnixMilli(), 10) }
