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
	key   []byte // as JSON
	value json.RawMessage
}

func (m *member) is(key string) bool {
	if bytes.IndexByte(m.key, '\\') < 0 {
		return string(m.key[1:len(m.key)-1]) == key
	}
	var unquoted string
	return json.Unmarshal(m.key, &unquoted) == nil && unquoted == key
}

// ParseObject returns ErrNoObject for anything but one JSON object.
func ParseObject(data []byte) (Object, error) {
	if !utf8.Valid(data) || !json.Valid(data) {
		return nil, ErrNoObject
	}
	if o := members(data, nil); o != nil {
		return o, nil
	}
	return nil, ErrNoObject
}

// members returns the members of an object that is known to be valid, in the memory of reused, nil for any other value.
func members(object []byte, reused Object) Object {
	if !opens(object, '{') {
		return nil
	}
	o := slices.Grow(reused[:0], 1) // not nil
	for key, value := range entries(object) {
		o = append(o, member{key, value})
	}
	return o
}

// Get returns the value of key, nil when there is none. The last of several wins, as in most JSON parsers.
func (o Object) Get(key string) json.RawMessage {
	for _, m := range slices.Backward(o) {
		if m.is(key) {
			return m.value
		}
	}
	return nil
}

// Set returns o with value as the only one under key, at the position of the first, else at the end. o must not be used
// afterwards.
func (o Object) Set(key string, value json.RawMessage) Object {
	at := slices.IndexFunc(o, func(m member) bool { return m.is(key) })
	if at < 0 {
		return append(o, member{strconv.AppendQuote(nil, key), value})
	}
	o[at].value = value
	return append(o[:at+1], o[at+1:].Remove(key)...)
}

// Remove returns o without the values under key. o must not be used afterwards.
func (o Object) Remove(key string) Object {
	return slices.DeleteFunc(o, func(m member) bool { return m.is(key) })
}

func (o Object) Encode() []byte { return o.appendTo(nil) }

func (o Object) appendTo(b []byte) []byte {
	b = append(b, '{')
	for i, m := range o {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(b, m.key...), ':'), m.value...)
	}
	return append(b, '}')
}

// WithTimes returns raw, the stages as their project server sent them, with the items' times replaced by those in
// dated. Everything else is kept, and all of what is not valid.
func WithTimes(raw json.RawMessage, dated []domain.Stage) json.RawMessage {
	return eachStage(raw, len(dated), func(i int, stage Object) Object {
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
	return eachStage(raw, len(stages), func(i int, stage Object) Object {
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

func eachStage(raw json.RawMessage, n int, change func(i int, stage Object) Object) json.RawMessage {
	if !json.Valid(raw) {
		return raw
	}
	return eachElement(raw, n, change)
}

// eachElement changes the first n elements of a list, and leaves alone what is no list or object.
func eachElement(list json.RawMessage, n int, change func(i int, element Object) Object) json.RawMessage {
	if !opens(list, '[') {
		return list
	}
	b := append(make([]byte, 0, len(list)+64*n), '[') // for most of what is added
	var o Object
	i := 0
	for _, element := range entries(list) {
		if i > 0 {
			b = append(b, ',')
		}
		if read := members(element, o); i < n && read != nil {
			o = change(i, read)
			b = o.appendTo(b)
		} else {
			b = append(b, element...)
		}
		i++
	}
	return append(b, ']')
}

func milliseconds(t time.Time) []byte { return strconv.AppendInt(nil, t.UnixMilli(), 10) }
