package signin

import (
	"bytes"
	"encoding/json"
	"errors"
	"unicode/utf8"
)

// ErrNoObject is returned for a credentials file that is not a JSON object; it is not overwritten.
var ErrNoObject = errors.New("is not a JSON object; move it away and sign in again")

// object is a JSON object that keeps the order of its members and the text of their values, so that other programs'
// members are written back as they were.
type object []member

type member struct {
	key   string
	value json.RawMessage
}

// parseObject returns ErrNoObject for anything but one JSON object.
func parseObject(data []byte) (object, error) {
	if !utf8.Valid(data) || !json.Valid(data) {
		return nil, ErrNoObject
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	if start, err := decoder.Token(); err != nil || start != json.Delim('{') {
		return nil, ErrNoObject
	}
	o := object{}
	for decoder.More() {
		var m member
		key, err := decoder.Token()
		if err != nil {
			return nil, ErrNoObject
		}
		m.key = key.(string)
		if err := decoder.Decode(&m.value); err != nil {
			return nil, ErrNoObject
		}
		o = append(o, m)
	}
	return o, nil
}

// get returns the value of key, nil when there is none. The last of several wins, as in most JSON parsers.
func (o object) get(key string) json.RawMessage {
	for i := len(o) - 1; i >= 0; i-- {
		if o[i].key == key {
			return o[i].value
		}
	}
	return nil
}

// set returns o with value as the only one under key, at the position of the first, else at the end.
func (o object) set(key string, value json.RawMessage) object {
	for i, m := range o {
		if m.key == key {
			rest := o[i+1:].remove(key)
			return append(append(o[:i:i], member{key, value}), rest...)
		}
	}
	return append(o[:len(o):len(o)], member{key, value})
}

// remove returns o without key.
func (o object) remove(key string) object {
	var kept object
	for _, m := range o {
		if m.key != key {
			kept = append(kept, m)
		}
	}
	return kept
}

// encode returns o as indented JSON with a trailing line break.
func (o object) encode() []byte {
	var flat, b bytes.Buffer
	flat.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			flat.WriteByte(',')
		}
		encoder := json.NewEncoder(&flat)
		encoder.SetEscapeHTML(false)
		_ = encoder.Encode(m.key) // a string always encodes
		flat.WriteByte(':')
		flat.Write(m.value)
	}
	flat.WriteByte('}')
	_ = json.Indent(&b, flat.Bytes(), "", "  ") // its input is valid JSON
	b.WriteByte('\n')
	return b.Bytes()
}
