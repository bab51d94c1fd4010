// Package wire has the JSON forms that more than one program reads or writes: project servers' responses, which the
// gateway reads and returns. It must contain no rules.
package wire

import "time"

// TimeOrNull returns t in Unix milliseconds, nil for the zero time.
func TimeOrNull(t time.Time) *int64 {
	if t.IsZero() {
		return nil
	}
	ms := t.UnixMilli()
	return &ms
}

// Time converts Unix milliseconds, nil and 0 to the zero time.
func Time(ms *int64) time.Time {
	if ms == nil || *ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(*ms)
}

// Text returns the text, "" for nil.
func Text(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}
