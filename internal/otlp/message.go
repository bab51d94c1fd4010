package otlp

import (
	"cmp"
	"encoding/binary"
	"errors"
	"slices"
	"strconv"
	"strings"

	common "go.opentelemetry.io/proto/otlp/common/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"switchyard/internal/jsonscan"
)

// message is a message of OTLP, or another value, as it was sent.
type message struct {
	sent []byte
	json bool // or protobuf
}

// field is a field of a message by its name in JSON and its number in protobuf, with what reads it.
type field struct {
	name   string
	number protowire.Number
	read   func(message) error
}

// each reads some fields of a message, and skips all others. A list is read element by element.
func (m message) each(fields ...field) error {
	if m.json {
		return m.eachJSON(fields)
	}
	for rest := m.sent; len(rest) > 0; {
		number, kind, n := protowire.ConsumeTag(rest)
		if n < 0 {
			return ErrMalformed
		}
		rest = rest[n:]
		if n = protowire.ConsumeFieldValue(number, kind, rest); n < 0 {
			return ErrMalformed
		}
		value := rest[:n]
		if rest = rest[n:]; kind == protowire.BytesType {
			value, _ = protowire.ConsumeBytes(value)
		}
		if i := slices.IndexFunc(fields, func(f field) bool { return f.number == number }); i >= 0 {
			if err := fields[i].read(message{value, false}); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m message) eachJSON(fields []field) error {
	return jsonscan.Use(m.sent, func(r *jsonscan.Reader) (err error) {
		switch r.Kind() {
		case '{':
		case 'n':
			r.Value()
			return r.End()
		default:
			return ErrMalformed
		}
		for name := range r.Parts() {
			i := slices.IndexFunc(fields, func(f field) bool { return name.Is(f.name) })
			switch {
			case i < 0:
			case r.Kind() != '[':
				err = fields[i].read(message{r.Value(), true})
			default:
				for range r.Parts() {
					if err = fields[i].read(message{r.Value(), true}); err != nil {
						return err
					}
				}
			}
			if err != nil {
				return err
			}
		}
		return r.End()
	})
}

// errFound ends the reading of a message whose rest is not needed.
var errFound = errors.New("found")

// records calls add with all log records in an export, and the attributes of what sent them.
func (m message) records(add func(resource attributes, record message) error) error {
	var of attributes
	record := limited(func(record message) error { return add(of, record) })
	scope := limited(func(scope message) error { return scope.each(field{"logRecords", 2, record}) })
	return m.each(field{"resourceLogs", 1, limited(func(logs message) error {
		of = nil
		// Exporters send the resource before its records, but it may come after them.
		err := logs.each(field{"resource", 1, func(resource message) error {
			return cmp.Or(resource.each(field{"attributes", 1, of.add}), errFound)
		}})
		if err == errFound {
			err = nil
		}
		return cmp.Or(err, logs.each(field{"scopeLogs", 2, scope}))
	})})
}

// limited returns read for at most MaxRecords messages: empty ones take a few bytes each.
func limited(read func(message) error) func(message) error {
	n := 0
	return func(m message) error {
		if n++; n > MaxRecords {
			return ErrMany
		}
		return read(m)
	}
}

// text returns what a string says.
func (m message) text() (text string) {
	if !m.json {
		return string(m.sent)
	}
	_ = jsonscan.Use(m.sent, func(r *jsonscan.Reader) error { // anything but a string counts as empty
		text = r.Text()
		return nil
	})
	return text
}

// number reads a number of 64 bits, which OTLP's JSON writes as a string; 0 for anything else.
func (m message) number() (n uint64) {
	if m.json {
		n, _ = strconv.ParseUint(strings.Trim(string(m.sent[:min(len(m.sent), 30)]), `"`), 10, 64)
	} else if len(m.sent) == 8 {
		n = binary.LittleEndian.Uint64(m.sent)
	}
	return n
}

// maxText is how much of an attribute is read, in bytes: more than any that is used may have.
const maxText = 8 << 10

// noValue stands for what cannot be read, and is a value that no attribute may have.
var noValue = strings.Repeat("?", 300)

// attributes are the values of the attributes that are wanted, as texts.
type attributes map[string]string

// add adds an attribute, which is decoded only if it is wanted: others may be large, or broken.
func (a *attributes) add(sent message) error {
	name := ""
	err := sent.each(field{"key", 1, func(key message) error {
		if name = ""; len(key.sent) <= maxText {
			name = key.text()
		}
		return nil
	}})
	if err != nil || !wanted[name] {
		return err
	}
	if *a == nil { // most messages have nothing that is wanted
		*a = attributes{}
	}
	var pair common.KeyValue
	decode := proto.Unmarshal
	if sent.json {
		decode = protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal
	}
	if len(sent.sent) > maxText || decode(sent.sent, &pair) != nil {
		(*a)[name] = noValue
		return nil
	}
	switch value := pair.GetValue().GetValue().(type) {
	case *common.AnyValue_StringValue:
		(*a)[name] = value.StringValue
	case *common.AnyValue_IntValue:
		(*a)[name] = strconv.FormatInt(value.IntValue, 10)
	case *common.AnyValue_DoubleValue:
		(*a)[name] = strconv.FormatFloat(value.DoubleValue, 'f', -1, 64)
	case nil:
	default: // no attribute that is used is a boolean, a list or the like
		(*a)[name] = noValue
	}
	return nil
}
