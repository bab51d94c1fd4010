package board

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"

	"switchyard/internal/jsonscan"
)

// maxTasks is how many stories of a file are read at most: they take more memory than its text.
const maxTasks = 50_000

var errJSON = errors.New("the file is not JSON")

// setJSON sets a member of the object at a position in a text: in place, or as the last one, formatted like the
// object's last member.
func setJSON(text []byte, at int, name string, value []byte) (textEdit, error) {
	text = text[at:]
	r := jsonscan.NewReader(text)
	if r.Kind() != '{' {
		return textEdit{}, errJSON
	}
	var is textEdit           // of the current value
	var space, colon []byte   // before the last name, and after it
	end, last := r.At()+1, -1 // where the preceding part ends, and where the last value ends
	for found := range r.Parts() {
		nameEnd, start := r.Offset(), r.At()
		space, colon = text[end:nameEnd], text[nameEnd:start]
		r.Value()
		if end, last = r.Offset(), r.Offset(); found.Is(name) {
			is = textEdit{at + start, at + end, value}
		}
	}
	if r.Err() != nil {
		return textEdit{}, errJSON
	}
	quoted, _ := json.Marshal(name) // strings always encode
	switch {
	case is.end > 0:
		return is, nil
	case last < 0:
		return textEdit{at + end, at + r.Offset() - 1, slices.Concat(quoted, []byte(": "), value)}, nil
	}
	space = space[:bytes.IndexByte(space, '"')]
	space = space[len(bytes.TrimRight(space, " \t\r\n")):]
	return textEdit{at + last, at + last, slices.Concat([]byte(","), space, quoted, colon, value)}, nil
}
