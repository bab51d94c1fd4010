package board

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
)

// maxJSONValues is about how many values a text may have: they take much more memory than the text.
const maxJSONValues = 1_000_000

func checkJSON(text []byte) error {
	if bytes.Count(text, []byte(",")) > maxJSONValues {
		return errors.New("the file has more than a million values")
	}
	return nil
}

// decodeLoosely leaves out what has another type than it should. It returns an error if the text is no JSON.
func decodeLoosely(text []byte, to any) error {
	err := json.Unmarshal(text, to)
	if _, mistyped := errors.AsType[*json.UnmarshalTypeError](err); mistyped {
		return nil
	}
	return err
}

// jsonValue is where a value is in a text that is JSON.
type jsonValue struct {
	text       []byte
	start, end int
}

type jsonMember struct {
	name string
	at   int // where the name begins
	jsonValue
}

// members returns those of an object, or the items of an array, which have no names.
func (v jsonValue) members() (members []jsonMember) {
	decoder := json.NewDecoder(bytes.NewReader(v.text[v.start:v.end]))
	open, err := decoder.Token()
	if _, nested := open.(json.Delim); !nested {
		return nil
	}
	for err == nil && decoder.More() {
		m := jsonMember{"", v.start + int(decoder.InputOffset()), v}
		if open == json.Delim('{') {
			m.at += bytes.IndexByte(v.text[m.at:], '"')
			name, _ := decoder.Token()
			m.name, _ = name.(string)
		}
		var raw json.RawMessage
		err = decoder.Decode(&raw)
		m.end = v.start + int(decoder.InputOffset())
		m.start = m.end - len(raw)
		members = append(members, m)
	}
	return members
}

// member returns a member's value, the last one where there are several, zero if there is none.
func (v jsonValue) member(name string) jsonValue {
	for _, m := range slices.Backward(v.members()) {
		if m.name == name {
			return m.jsonValue
		}
	}
	return jsonValue{}
}

// set makes a member have a value: in its place, or last in the way the object's last member is written.
func (v jsonValue) set(name string, value []byte) textEdit {
	if is := v.member(name); is.end > 0 {
		return textEdit{is.start, is.end, value}
	}
	quoted, _ := json.Marshal(name) // a text can be encoded
	members := v.members()
	if len(members) == 0 {
		return textEdit{v.start + 1, v.end - 1, slices.Concat(quoted, []byte(": "), value)}
	}
	last := members[len(members)-1]
	space := v.text[:last.at]
	space = space[len(bytes.TrimRight(space, " \t\r\n")):]
	colon := v.text[last.at:last.start]
	colon = colon[bytes.LastIndexByte(colon, ':'):]
	return textEdit{last.end, last.end, slices.Concat([]byte(","), space, quoted, colon, value)}
}
