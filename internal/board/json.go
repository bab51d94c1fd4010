package board

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
)

// jsonNode is a value in a text: where it is, and what is in it.
type jsonNode struct {
	start, end int
	members    []jsonMember // of an object; not nil for one without any
	items      []jsonNode   // of an array; not nil for one without any
}

type jsonMember struct {
	name  string
	at    int // where the name begins
	value jsonNode
}

// maxJSONNesting is how deep a text may be nested, and maxJSONValues about how many values it may have: these take much
// more memory than the text.
const maxJSONNesting, maxJSONValues = 1000, 1_000_000

// checkJSON returns an error for a text with too many values.
func checkJSON(text []byte) error {
	if bytes.Count(text, []byte(",")) > maxJSONValues {
		return errors.New("the file has more than a million values")
	}
	return nil
}

// parseJSON returns a text's value, so that parts of the text can be changed.
func parseJSON(text []byte) (jsonNode, error) {
	if err := checkJSON(text); err != nil {
		return jsonNode{}, err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	node, err := parseValue(decoder, text, 0)
	if err == nil && decoder.More() {
		err = errors.New("something follows the value")
	}
	return node, err
}

func parseValue(d *json.Decoder, text []byte, depth int) (n jsonNode, err error) {
	before := int(d.InputOffset())
	n.start = before + len(text[before:]) - len(bytes.TrimLeft(text[before:], " \t\r\n,:"))
	token, err := d.Token()
	if err != nil {
		return n, err
	}
	if depth > maxJSONNesting {
		return n, errors.New("it is nested too deeply")
	}
	switch token {
	case json.Delim('{'):
		n.members = []jsonMember{}
		for d.More() {
			var m jsonMember
			key := jsonNode{}
			if key, err = parseValue(d, text, depth+1); err != nil {
				return n, err
			}
			if err := json.Unmarshal(text[key.start:key.end], &m.name); err != nil {
				return n, err
			}
			m.at = key.start
			if m.value, err = parseValue(d, text, depth+1); err != nil {
				return n, err
			}
			n.members = append(n.members, m)
		}
		_, err = d.Token()
	case json.Delim('['):
		n.items = []jsonNode{}
		for d.More() {
			item, err := parseValue(d, text, depth+1)
			if err != nil {
				return n, err
			}
			n.items = append(n.items, item)
		}
		_, err = d.Token()
	}
	n.end = int(d.InputOffset())
	return n, err
}

// member returns a member's value, the last one where there are several, zero if there is none.
func (n jsonNode) member(name string) jsonNode {
	for _, m := range slices.Backward(n.members) {
		if m.name == name {
			return m.value
		}
	}
	return jsonNode{}
}

// jsonEdit replaces a part of a text.
type jsonEdit struct {
	start, end int
	text       []byte
}

// set makes a member have a value: in its place, or last in the way the object's last member is written.
func (n jsonNode) set(text []byte, name string, value []byte) jsonEdit {
	if is := n.member(name); is.end > 0 {
		return jsonEdit{is.start, is.end, value}
	}
	quoted, _ := json.Marshal(name) // a text can be encoded
	if len(n.members) == 0 {
		return jsonEdit{n.start + 1, n.end - 1, slices.Concat(quoted, []byte(": "), value)}
	}
	last := n.members[len(n.members)-1]
	space := text[:last.at]
	space = space[len(bytes.TrimRight(space, " \t\r\n")):]
	colon := text[last.at:last.value.start]
	colon = colon[bytes.LastIndexByte(colon, ':'):]
	return jsonEdit{last.value.end, last.value.end, slices.Concat([]byte(","), space, quoted, colon, value)}
}

// applyEdits returns a text with parts of it replaced, which do not overlap.
func applyEdits(text []byte, edits []jsonEdit) []byte {
	slices.SortFunc(edits, func(a, b jsonEdit) int { return a.start - b.start })
	var changed []byte
	at := 0
	for _, e := range edits {
		changed = append(append(changed, text[at:e.start]...), e.text...)
		at = e.end
	}
	return append(changed, text[at:]...)
}
