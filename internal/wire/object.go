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
	"switchyard/internal/jsonscan"
)

// ErrNoObject is returned for JSON that is not an object.
var ErrNoObject = errors.New("is not a JSON object")

// Object is a JSON object that keeps the order and the text of its members, so that those of other programs are
// written back as they were.
type Object []member

type member struct {
	name  string
	key   []byte // as JSON
	value json.RawMessage
}

func newMember(name string, value json.RawMessage) member {
	return member{name, strconv.AppendQuote(nil, name), value}
}

// ParseObject returns ErrNoObject for anything but one JSON object.
func ParseObject(data []byte) (Object, error) {
	r, o := jsonscan.NewReader(data), Object{}
	if r.Kind() != '{' || !utf8.Valid(data) {
		return nil, ErrNoObject
	}
	for name := range r.Parts() {
		o = append(o, member{string(name), r.Quoted(), r.Value()})
	}
	if r.End() != nil {
		return nil, ErrNoObject
	}
	return o, nil
}

// Get returns the value of key, nil when there is none. The last of several wins, as in most JSON parsers.
func (o Object) Get(key string) json.RawMessage {
	for _, m := range slices.Backward(o) {
		if m.name == key {
			return m.value
		}
	}
	return nil
}

// Set returns o with value as the only one under key, at the position of the first or, without one, at the end. o must
// not be used afterwards.
func (o Object) Set(key string, value json.RawMessage) Object {
	at := slices.IndexFunc(o, func(m member) bool { return m.name == key })
	if at < 0 {
		return append(o, newMember(key, value))
	}
	o[at].value = value
	return append(o[:at+1], o[at+1:].Remove(key)...)
}

// Remove returns o without the values under key. o must not be used afterwards.
func (o Object) Remove(key string) Object {
	return slices.DeleteFunc(o, func(m member) bool { return m.name == key })
}

func (o Object) Encode() []byte {
	b := []byte{'{'}
	for i, m := range o {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(b, m.key...), ':'), m.value...)
	}
	return append(b, '}')
}

// WithTimes returns raw, the stages as their project server sent them, with the items' times replaced by those in
// dated. Everything else is kept, and all of raw if it is not valid.
func WithTimes(raw json.RawMessage, dated []domain.Stage) json.RawMessage {
	hasLeast := bytes.Contains(raw, []byte(`"since_at_least"`))
	return setInItems(raw, dated, func(item *domain.Item) Object {
		blockedSince := []byte("null")
		if item.Blocked != "" {
			blockedSince = milliseconds(item.TroubleSince())
		}
		members := Object{
			newMember("since_ms", milliseconds(item.Since)), newMember("blocked_since_ms", blockedSince),
			// No project server says who works on a story, and what it costs.
			newMember("claim", []byte("null")), newMember("cost_usd", []byte("null")),
		}
		if hasLeast {
			members = append(members, newMember("since_at_least", strconv.AppendBool(nil, item.SinceAtLeast)))
		}
		return members
	})
}

// WithClaims returns raw, stages as WithTimes returns them, with the claims and the costs of stories in their items.
func WithClaims(
	raw json.RawMessage, stages []domain.Stage, claims map[string]domain.Claim, cost func(id string) *domain.Micros,
) json.RawMessage {
	return setInItems(raw, stages, func(item *domain.Item) (members Object) {
		if c, claimed := claims[item.StoryID]; claimed {
			members = append(members, newMember("claim", domain.EncodeJSON(NewClaim(&c))))
		}
		if usd := cost(item.StoryID); usd != nil {
			members = append(members, newMember("cost_usd", domain.EncodeJSON(usd)))
		}
		return members
	})
}

// setInItems returns raw, JSON of stages, with the members that set returns for each item in place of its own.
func setInItems(raw json.RawMessage, stages []domain.Stage, set func(*domain.Item) Object) json.RawMessage {
	var result []byte
	copied := 0
	replace := func(from, to int, text []byte) {
		if result == nil {
			result = make([]byte, 0, len(raw)+len(raw)/2) // for most of what is added
		}
		result = append(append(result, raw[copied:from]...), text...)
		copied = to
	}
	r := jsonscan.NewReader(raw)
	if r.Kind() != '[' {
		return raw
	}
	i := -1
	for range r.Parts() {
		if i++; i >= len(stages) || r.Kind() != '{' {
			continue
		}
		at := i
		for name := range r.Parts() {
			switch items := stages[at].Items; {
			case name.Is("name") && r.Kind() == '"':
				at = placeOf(stages, i, r.Value())
			case name.Is("items") && r.Kind() == '[':
				j := -1
				for range r.Parts() {
					if j++; j < len(items) && r.Kind() == '{' {
						setMembers(r, set(&items[j]), replace)
					}
				}
			}
		}
	}
	if result == nil || r.End() != nil {
		return raw
	}
	return append(result, raw[copied:]...)
}

// placeOf returns the place of the stage with a name: usual, unless its server has it in another.
func placeOf(stages []domain.Stage, usual int, text []byte) int {
	var name string
	if json.Unmarshal(text, &name) == nil && stages[usual].Name != name {
		if at := slices.IndexFunc(stages, func(s domain.Stage) bool { return s.Name == name }); at >= 0 {
			return at
		}
	}
	return usual
}

// setMembers replaces the values of members of the next object, and adds those that it does not have.
func setMembers(r *jsonscan.Reader, members Object, replace func(from, to int, text []byte)) {
	if len(members) == 0 {
		return
	}
	count, found := 0, 0
	for name := range r.Parts() {
		count++
		for i := range members {
			if m := &members[i]; name.Is(m.name) {
				from := r.At()
				r.Value()
				replace(from, r.Offset(), m.value)
				found |= 1 << i
				break
			}
		}
	}
	if found == 1<<len(members)-1 || r.Err() != nil {
		return
	}
	var added []byte
	for i, m := range members {
		if found&(1<<i) == 0 {
			if count++; count > 1 {
				added = append(added, ',')
			}
			added = append(append(append(added, m.key...), ':'), m.value...)
		}
	}
	end := r.Offset() - 1
	replace(end, end, added)
}

func milliseconds(t time.Time) []byte { return strconv.AppendInt(nil, t.UnixMilli(), 10) }
