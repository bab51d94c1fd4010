package otlp

import (
	"strconv"
	"strings"

	"switchyard/internal/jsonscan"
)

// parts calls each with the names and the texts of the members of a JSON object; null has none.
func parts(text []byte, each func(name jsonscan.Name, value []byte) error) error {
	return scan(text, '{', each)
}

// elements calls each with the elements of a JSON list; null has none.
func elements(text []byte, each func(value []byte) error) error {
	return scan(text, '[', func(_ jsonscan.Name, value []byte) error { return each(value) })
}

func scan(text []byte, kind byte, each func(name jsonscan.Name, value []byte) error) (err error) {
	r := jsonscan.NewReader(text)
	if k := r.Kind(); k == 'n' {
		return nil
	} else if k != kind {
		return ErrMalformed
	}
	for name := range r.Parts() {
		value := r.Value()
		if r.Err() == nil && err == nil {
			err = each(name, value)
		}
	}
	if err == nil {
		err = r.End()
	}
	return err
}

// member returns a function for parts that calls each with the value of the members of a name.
func member(name string, each func(value []byte) error) func(jsonscan.Name, []byte) error {
	return func(n jsonscan.Name, value []byte) error {
		if !n.Is(name) {
			return nil
		}
		return each(value)
	}
}

// list is member for each element of a list.
func list(name string, each func(value []byte) error) func(jsonscan.Name, []byte) error {
	return member(name, func(value []byte) error { return elements(value, each) })
}

// walkJSON calls count for each log record, or add with what is read of it.
func walkJSON(body []byte, count func() error, add func(*record)) error {
	if count != nil {
		if err := jsonscan.Check(body); err != nil {
			return err
		}
	}
	return parts(body, list("resourceLogs", func(resourceLogs []byte) error {
		var resource attributes
		err := parts(resourceLogs, member("resource", func(value []byte) error {
			return parts(value, list("attributes", resource.addJSON))
		}))
		if err != nil {
			return err
		}
		return parts(resourceLogs, list("scopeLogs", func(scopeLogs []byte) error {
			return parts(scopeLogs, list("logRecords", func(text []byte) error {
				if count != nil {
					return count()
				}
				r := record{resource: resource}
				defer add(&r)
				return parts(text, func(name jsonscan.Name, value []byte) error {
					switch {
					case name.Is("timeUnixNano"):
						r.time = nanos(value)
					case name.Is("observedTimeUnixNano"):
						r.observed = nanos(value)
					case name.Is("attributes"):
						return elements(value, r.attributes.addJSON)
					}
					return nil
				})
			}))
		}))
	}))
}

// nanos reads a 64-bit number, which OTLP writes as a string; 0 for anything else.
func nanos(value []byte) uint64 {
	n, _ := strconv.ParseUint(strings.Trim(string(value[:min(len(value), 30)]), `"`), 10, 64)
	return n
}

// addJSON adds an attribute, if it is wanted.
func (a *attributes) addJSON(pair []byte) error {
	name, value := "", []byte(nil)
	err := parts(pair, func(n jsonscan.Name, text []byte) error {
		switch {
		case n.Is("key") && text[0] == '"' && len(text) <= maxText:
			name = jsonscan.NewReader(text).Text()
		case n.Is("value"):
			value = text
		}
		return nil
	})
	if err != nil || !wanted[name] || value == nil {
		return err
	}
	if len(value) > maxText {
		a.set(name, tooLong)
		return nil
	}
	return parts(value, func(n jsonscan.Name, text []byte) error {
		switch {
		case text[0] == '"' && (n.Is("stringValue") || n.Is("intValue") || n.Is("doubleValue")):
			a.set(name, jsonscan.NewReader(text).Text())
		case n.Is("intValue"), n.Is("doubleValue"):
			a.set(name, string(text))
		}
		return nil
	})
}
