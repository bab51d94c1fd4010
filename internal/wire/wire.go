// Package wire is the JSON of the nouns that more than one program writes or reads: what a project server answers, and the
// gateway reads and shows again. It knows forms, no rules.
package wire

import "time"

// TimeOrNull is t in Unix milliseconds, null for the zero time.
func TimeOrNull(t time.Time) *int64 {
	if t.IsZero() {
		return nil
	}
	ms := t.UnixMilli()
	return &ms
}

// Time is the time of Unix milliseconds, the zero time for null and 0.
func Time(ms *int64) time.Time {
	if ms == nil || *ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(*ms)
}

// Text is the text, "" for null.
func Text(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}
