package views

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"switchyard/internal/domain"
)

// age is a duration in words: "42 s", "14 min", "2 h", "3 d". static/times.js does the same.
func age(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", max(0, d/time.Second))
	case d < time.Hour:
		return fmt.Sprintf("%d min", d/time.Minute)
	case d < 24*time.Hour:
		return fmt.Sprintf("%d h", d/time.Hour)
	default:
		return fmt.Sprintf("%d d", d/(24*time.Hour))
	}
}

// ageAt is how old t is at a time that was cut to the minute: in a minute's course no age is said to be less than it is.
func ageAt(now, t time.Time) string { return age(now.Sub(t) + time.Minute - 1) }

// moment returns the time of a Unix millisecond stamp, one beyond what a date can say being cut to that.
func moment(ms uint64) time.Time {
	const last = 253402300799999 // the end of the year 9999
	return time.UnixMilli(int64(min(ms, last)))
}

// eventTime is when an event happened, as its project says, in what a date can say.
func eventTime(e domain.Event) time.Time { return moment(uint64(e.At.UnixMilli())) }

// machineTime is what a <time> element's datetime holds.
func machineTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// asOf says as of when what a page shows is known, "" where that is now.
func asOf(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return "as of " + t.Format("15:04")
}

// exactTime is what people read when they ask for the exact time.
func exactTime(t time.Time) string { return t.Format("2 Jan 2006 15:04:05 MST") }

// count is a number with its noun: "1 story", "3 stories".
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

// cut shortens text to at most length characters, leaving out its middle: names differ at their beginnings and ends.
func cut(text string, length int) string {
	if utf8.RuneCountInString(text) <= length {
		return text
	}
	runes := []rune(text)
	head := int(math.Ceil(float64(length-1) * 0.6))
	tail := length - 1 - head
	return strings.TrimRight(string(runes[:head]), " ") + "…" + strings.TrimLeft(string(runes[len(runes)-tail:]), " ")
}

// number returns the digits that a story's id begins with, to stand before its name: "14" of "14_story_login", "" when there
// are none, or when the name is the id itself.
func number(storyID, name string) string {
	digits, _, found := strings.Cut(storyID, "_")
	if !found || name == storyID || strings.Trim(digits, "0123456789") != "" {
		return ""
	}
	return digits
}

// Sentence turns text that is meant to follow other text into a sentence of its own.
func Sentence(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + strings.TrimSuffix(text[size:], ".") + "."
}

// shellQuote is text as one word of a shell.
func shellQuote(text string) string {
	if strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-") == "" {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
