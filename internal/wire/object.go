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
	if !utf8.Valid(data) || !json.Valid(data) {
		return nil, ErrNoObject
	}
	if o := members(data); o != nil {
		return o, nil
	}
	return nil, ErrNoObject
}

// members returns the members of an object that is known to be valid, nil for any other value.
func members(object []byte) Object {
	decoder := json.NewDecoder(bytes.NewReader(object))
	if start, _ := decoder.Token(); start != json.Delim('{') {
		return nil
	}
	o := Object{}
	for decoder.More() {
		before := decoder.InputOffset()
		key, _ := decoder.Token() // valid JSON has no errors
		m := member{text: bytes.TrimLeft(object[before:decoder.InputOffset()], ", \t\r\n")}
		m.key, _ = key.(string)
		_ = decoder.Decode(&m.value)
		o = append(o, m)
	}
	return o
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
	b := []byte{'{'}
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
			return item.Set("since_ms", milliseconds(items[j].Since)).Set("blocked_since_ms", blockedSince).
				Set("claim", []byte("null")) // no project server says who works on a story
		}))
	})
}

// WithClaims returns raw, stages as WithTimes returns them, with the claims of stories in their items.
func WithClaims(raw json.RawMessage, stages []domain.Stage, claims map[string]domain.Claim) json.RawMessage {
	return eachElement(raw, len(stages), func(i int, stage Object) Object {
		text, items := stage.Get("items"), stages[i].Items
		isClaimed := func(item domain.Item) bool { _, claimed := claims[item.StoryID]; return claimed }
		if text == nil || !slices.ContainsFunc(items, isClaimed) {
			return stage
		}
		return stage.Set("items", eachElement(text, len(items), func(j int, item Object) Object {
			c, claimed := claims[items[j].StoryID]
			if !claimed {
				return item
			}
			claim, _ := json.Marshal(NewClaim(&c)) // strings and numbers always encode
			return item.Set("claim", claim)
		}))
	})
}

// eachElement changes the first n elements of a list, and leaves alone what is no list or object.
func eachElement(list json.RawMessage, n int, change func(i int, element Object) Object) json.RawMessage {
	var all []json.RawMessage
	if json.Unmarshal(list, &all) != nil || all == nil {
		return list
	}
	for i, element := range all[:min(n, len(all))] {
		if o := members(element); o != nil {
			all[i] = change(i, o).Encode()
		}
	}
	b := []byte{'['}
	for i, element := range all {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, element...)
	}
	return append(b, ']')
}

func milliseconds(t time.Time) []byte { return strconv.AppendInt(nil, t.UnixMilli(), 10) }
