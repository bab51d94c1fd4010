package views

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"switchyard/internal/domain"
	"switchyard/internal/neterr"
)

// age returns a duration in words: "42 s", "14 min", "2 h", "3 d". static/times.js does the same.
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

// ageAt returns the age of t at a time truncated to the minute, rounded up so that no age is shown as less than it is.
func ageAt(now, t time.Time) string { return age(now.Sub(t) + time.Minute - 1) }

// ageAtLeast is ageAt for what may be older: "over 180 d".
func ageAtLeast(now, t time.Time, atLeast bool) string {
	if atLeast {
		return "over\u00a0" + ageAt(now, t)
	}
	return ageAt(now, t)
}

// clockText returns a time of day, with the date unless it is today.
func clockText(at, now time.Time) string {
	at = at.In(now.Location())
	day := dateText(at, now)
	if day == dateText(now, now) {
		day = "today"
	}
	return day + at.Format(" 15:04")
}

// dateText returns a day, with its year unless that is now's.
func dateText(at, now time.Time) string {
	if at = at.In(now.Location()); at.Year() == now.Year() {
		return at.Format("2 Jan")
	}
	return at.Format("2 Jan 2006")
}

// clampTime returns the time of a Unix millisecond stamp, at most the end of the year 9999.
func clampTime(ms uint64) time.Time {
	const last = 253402300799999 // the end of the year 9999
	return time.UnixMilli(int64(min(ms, last)))
}

// eventTime returns when an event happened according to its project, limited by clampTime.
func eventTime(e domain.Event) time.Time { return clampTime(uint64(e.At.UnixMilli())) }

func machineTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

func exactTime(t time.Time) string { return t.Format("2 Jan 2006 15:04:05 MST") }

// number returns the digits that a story's id begins with, to show before its name: "14" for "14_story_login", "" if
// there are none, or if the name is the id itself.
func number(storyID, name string) string {
	digits, _, found := strings.Cut(storyID, "_")
	if !found || name == storyID || strings.Trim(digits, "0123456789") != "" {
		return ""
	}
	return digits
}

// Sentence turns an error message, or what somebody wrote, into a sentence.
func Sentence(text string) string {
	if text = upper(text); strings.HasSuffix(text, "?") || strings.HasSuffix(text, "!") || strings.HasSuffix(text, "…") {
		return text
	}
	return strings.TrimSuffix(text, ".") + "."
}

// WhyAway says in plain words why a project server cannot be reached, and what to do about it.
func WhyAway(reason string) string { return cmp.Or(neterr.Plain(reason), Sentence(reason)) }

func upper(text string) string {
	if text == "" {
		return ""
	}
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + text[size:]
}

func thousands(n int) string { return domain.Thousands(n) }

// numbered returns a page's title with a number before it, unless that is 0.
func numbered(n int, title string) string {
	if n == 0 {
		return title
	}
	return "(" + thousands(n) + ") " + title
}

// percent returns a length for SVG.
func percent(value float64) string { return strconv.FormatFloat(value, 'f', 2, 64) + "%" }

// longAge is age with its two largest units: "5 h 31 min".
func longAge(d time.Duration) string {
	first, unit := age(d), 24*time.Hour
	switch {
	case d < time.Hour:
		return first
	case d < 24*time.Hour:
		unit = time.Hour
	}
	if rest := d % unit; rest >= unit/24 && rest >= time.Minute {
		return first + " " + age(rest)
	}
	return first
}

// zoneName returns the name of the time zone of t for an address, "" for the gateway's.
func zoneName(t time.Time) string {
	if name := t.Location().String(); name != "Local" {
		return name
	}
	return ""
}
