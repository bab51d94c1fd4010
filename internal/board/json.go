package board

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"

	"switchyard/internal/jsonscan"
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

// maxJSONValues is about how many values a text may have, and maxJSONNodes how many are looked at: they take much more
// memory than the text.
const maxJSONValues, maxJSONNodes = 1_000_000, 100_000

var errJSON = errors.New("the file is no JSON")

// parseJSON returns where the values of a text from a position on are, down to a depth, so that parts of it can be
// decoded or changed. What is deeper is skipped without a check: that takes a tenth of the time of decoding.
func parseJSON(text []byte, at, depth int) (jsonNode, error) {
	left := maxJSONNodes
	n, err := parseValue(text, at, depth, &left)
	if err == nil && afterSpace(text, n.end) < len(text) {
		err = errJSON
	}
	return n, err
}

func parseValue(text []byte, at, depth int, left *int) (n jsonNode, err error) {
	if *left--; *left < 0 {
		return n, errJSON
	}
	n.start = afterSpace(text, at)
	open := byteAt(text, n.start)
	if depth == 0 || open != '{' && open != '[' {
		n.end = jsonscan.ValueEnd(text, n.start)
		if n.end == n.start {
			err = errJSON
		}
		return n, err
	}
	if n.members, n.items = []jsonMember{}, nil; open == '[' {
		n.members, n.items = nil, []jsonNode{}
	}
	closing := open + 2 // in ASCII
	at = afterSpace(text, n.start+1)
	if byteAt(text, at) == closing {
		n.end = at + 1
		return n, nil
	}
	for {
		m := jsonMember{at: afterSpace(text, at)}
		if open == '{' {
			end := jsonscan.ValueEnd(text, m.at)
			if json.Unmarshal(text[m.at:end], &m.name) != nil {
				return n, errJSON
			}
			if at = afterSpace(text, end); byteAt(text, at) != ':' {
				return n, errJSON
			}
			at++
		}
		if m.value, err = parseValue(text, at, depth-1, left); err != nil {
			return n, err
		}
		if open == '{' {
			n.members = append(n.members, m)
		} else {
			n.items = append(n.items, m.value)
		}
		at = afterSpace(text, m.value.end)
		switch byteAt(text, at) {
		case ',':
			at++
		case closing:
			n.end = at + 1
			return n, nil
		default:
			return n, errJSON
		}
	}
}

// byteAt returns 0 after the end of a text.
func byteAt(text []byte, at int) byte {
	if at < len(text) {
		return text[at]
	}
	return 0
}

func afterSpace(text []byte, at int) int {
	for at < len(text) && (text[at] == ' ' || text[at] == '\n' || text[at] == '\r' || text[at] == '\t') {
		at++
	}
	return at
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

// set makes a member have a value: in its place, or last in the way the object's last member is written.
func (n jsonNode) set(text []byte, name string, value []byte) textEdit {
	if is := n.member(name); is.end > 0 {
		return textEdit{is.start, is.end, value}
	}
	quoted, _ := json.Marshal(name) // a text can be encoded
	if len(n.members) == 0 {
		return textEdit{n.start + 1, n.end - 1, slices.Concat(quoted, []byte(": "), value)}
	}
	last := n.members[len(n.members)-1]
	space := text[:last.at]
	space = space[len(bytes.TrimRight(space, " \t\r\n")):]
	colon := text[last.at:last.value.start]
	colon = colon[bytes.LastIndexByte(colon, ':'):]
	return textEdit{last.value.end, last.value.end, slices.Concat([]byte(","), space, quoted, colon, value)}
}
