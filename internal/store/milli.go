package store

import (
	"fmt"
	"time"
)

// milli scans a time that is stored as Unix milliseconds; 0 is the zero time.
type milli time.Time

func (m *milli) Scan(value any) error {
	ms, ok := value.(int64)
	if !ok {
		return fmt.Errorf("%T is not a time in milliseconds", value)
	}
	*m = milli{}
	if ms != 0 {
		*m = milli(time.UnixMilli(ms))
	}
	return nil
}

// toMilli is how a time is stored: 0 for the zero time.
func toMilli(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}
