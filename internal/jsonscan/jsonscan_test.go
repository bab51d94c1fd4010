package jsonscan_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"switchyard/internal/jsonscan"
)

// FuzzParts: the values that are found are those that a decoder finds.
func FuzzParts(f *testing.F) {
	for _, text := range []string{
		`{"a\"b":"c\\","d":[1,"]",{"e":{}}],"a":-1.5e3 , "":null}`, "[]", `{"a":[[[[[["]"]]]]]]}`, ` {"a":1,"a":2}`, "7", "", "{", `{"a"`,
		`{"a":}`, `[1,]`, `[1 2]`, `{"a" 1}`, `"`, `"\`, `[}`, "{]", `{"a":1}}`, `[<<<<<<< HEAD]`, `{1:2}`, "[\"\xff\"]", `["\ud800"]`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		members, list := map[string]json.RawMessage{}, []json.RawMessage{}
		r := jsonscan.NewReader(text)
		open := r.Kind()
		for name := range r.Parts() {
			at := r.At()
			value := r.Value()
			if r.Err() == nil && !bytes.Equal(text[at:r.Offset()], value) {
				t.Fatalf("%q: %q is said to be at %d to %d", text, value, at, r.Offset())
			}
			members[string(name)], list = value, append(list, value)
		}
		if open != '{' && open != '[' {
			r.Value()
		}
		if is := json.Valid(text); is != (r.End() == nil) || is != (jsonscan.Check(text) == nil) {
			t.Fatalf("%q: %v, %v", text, r.Err(), jsonscan.Check(text))
		} else if !is {
			return
		}
		var wantMembers map[string]json.RawMessage
		if json.Unmarshal(text, &wantMembers) == nil && wantMembers != nil {
			for name, value := range wantMembers {
				if !bytes.Equal(members[name], value) || len(members) != len(wantMembers) {
					t.Errorf("%q: %q is %q", text, name, members[name])
				}
			}
		}
		var wantList []json.RawMessage
		if json.Unmarshal(text, &wantList) == nil && len(wantList) != len(list) {
			t.Errorf("%q: %d elements", text, len(list))
		}
	})
}

func TestEveryValueCounts(t *testing.T) {
	for text, want := range map[string]error{
		"[" + strings.Repeat("0,", 499_990) + "0]":          nil,
		"[" + strings.Repeat("0,", 1_000_000) + "0]":        jsonscan.ErrMany,
		"[" + strings.Repeat("null,", 1_000_000) + "0]":     jsonscan.ErrMany,
		strings.Repeat("[", 100) + strings.Repeat("]", 100): nil,
		strings.Repeat("[", 101) + strings.Repeat("]", 101): jsonscan.ErrDeep,
	} {
		if err := jsonscan.Check([]byte(text)); !errors.Is(err, want) {
			t.Errorf("%.20s… of %d bytes: %v", text, len(text), err)
		}
	}
}
