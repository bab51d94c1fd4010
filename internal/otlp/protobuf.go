package otlp

import (
	"fmt"
	"math"
	"strconv"

	common "go.opentelemetry.io/proto/otlp/common/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// field is a field of a message: its number with its content, or its value if that is a number.
type field struct {
	number  protowire.Number
	content []byte
	value   uint64
}

// fields calls each with the fields of a message.
func fields(message []byte, each func(field) error) error {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return ErrMalformed
		}
		f, rest := field{number: number}, message[n:]
		switch kind {
		case protowire.BytesType:
			f.content, n = protowire.ConsumeBytes(rest)
		case protowire.VarintType:
			f.value, n = protowire.ConsumeVarint(rest)
		case protowire.Fixed64Type:
			f.value, n = protowire.ConsumeFixed64(rest)
		default:
			n = protowire.ConsumeFieldValue(number, kind, rest)
		}
		if n < 0 {
			return ErrMalformed
		}
		if err := each(f); err != nil {
			return err
		}
		message = rest[n:]
	}
	return nil
}

// in returns a function for fields that calls each with the content of the fields of a number, as a message.
func in(number protowire.Number, each func(message []byte) error) func(field) error {
	return func(f field) error {
		if f.number != number {
			return nil
		}
		return each(f.content)
	}
}

// walkProtobuf calls count for each log record, or add with what is read of it. The numbers are those of LogsData.
func walkProtobuf(body []byte, count func() error, add func(*record)) error {
	return fields(body, in(1, func(resourceLogs []byte) error {
		var resource attributes
		err := fields(resourceLogs, in(1, func(message []byte) error {
			return fields(message, in(1, resource.addProtobuf))
		}))
		if err != nil {
			return err
		}
		return fields(resourceLogs, in(2, func(scopeLogs []byte) error {
			return fields(scopeLogs, in(2, func(message []byte) error {
				if count != nil {
					return count()
				}
				r := record{resource: resource}
				defer add(&r)
				return fields(message, func(f field) error {
					switch f.number {
					case 1:
						r.time = f.value
					case 11:
						r.observed = f.value
					case 6:
						return r.attributes.addProtobuf(f.content)
					}
					return nil
				})
			}))
		}))
	}))
}

// addProtobuf adds a KeyValue, decoding it only if it is wanted.
func (a *attributes) addProtobuf(message []byte) error {
	name := ""
	err := fields(message, in(1, func(key []byte) error {
		if name = ""; wanted[string(key)] {
			name = string(key)
		}
		return nil
	}))
	if err != nil || name == "" {
		return err
	}
	if len(message) > maxText {
		a.set(name, tooLong)
		return nil
	}
	var pair common.KeyValue
	if proto.Unmarshal(message, &pair) != nil {
		return ErrMalformed
	}
	switch value := pair.GetValue().GetValue().(type) {
	case *common.AnyValue_StringValue:
		a.set(name, value.StringValue)
	case *common.AnyValue_IntValue:
		a.set(name, strconv.FormatInt(value.IntValue, 10))
	case *common.AnyValue_DoubleValue:
		a.set(name, strconv.FormatFloat(value.DoubleValue, 'g', -1, 64))
		if value.DoubleValue == math.Trunc(value.DoubleValue) && math.Abs(value.DoubleValue) <= 1<<53 {
			a.set(name, fmt.Sprintf("%.0f", value.DoubleValue))
		}
	}
	return nil
}
