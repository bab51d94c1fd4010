package store

import (
	"fmt"
	"time"
)

// Milli scans a time that is stored as Unix milliseconds; 0 is the zero time.
type Milli time.Time

func (m *Milli) Scan(value any) error {
	ms, ok := value.(int64)
	if !ok {
		return fmt.Errorf("%T is not a time in milliseconds", value)
	}
	*m = Milli{}
	if ms != 0 {
		*m = Milli(time.UnixMilli(ms))
	}
	return nil
}

// ToMilli returns the stored form of a time: Unix milliseconds, 0 for the zero time.
func ToMilli(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}
