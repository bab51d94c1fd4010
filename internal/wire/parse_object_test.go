package wire_test

import (
	"bytes"
	"encoding/json"
	"testing"
	"unicode/utf8"

	"switchyard/internal/wire"
)

// FuzzParseObject checks that an object's members are those that encoding/json finds, and that it is written as it came.
func FuzzParseObject(f *testing.F) {
	for _, text := range []string{
		`{}`, " {\t}\r\n", `{"a":1,"a":2}`, `{"\u0061":"\\","b":["]",{"}":"\""}],"":null}`, `[]`, `{"a":1}}`, `{"é":-1.5e+3 , "\\":true}`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		o, err := wire.ParseObject([]byte(text))
		var want map[string]json.RawMessage
		isObject := utf8.ValidString(text) && json.Unmarshal([]byte(text), &want) == nil && want != nil
		if isObject != (err == nil) {
			t.Fatalf("%q: %v", text, err)
		}
		if !isObject {
			return
		}
		for key, value := range want {
			if got := o.Get(key); !bytes.Equal(got, value) {
				t.Errorf("%q: %q is %q, not %q", text, key, got, value)
			}
		}
		var compact bytes.Buffer
		if err := json.Compact(&compact, o.Encode()); err != nil {
			t.Fatal(err)
		}
		var before bytes.Buffer
		_ = json.Compact(&before, []byte(text))
		if !bytes.Equal(compact.Bytes(), before.Bytes()) {
			t.Errorf("%q becomes %q", text, o.Encode())
		}
	})
}
