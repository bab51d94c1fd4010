package domain

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// MaxPicture is the size of the largest picture in a story's text, in bytes.
const MaxPicture = 4 << 20

// MaxText is how much is kept of a name, an id or a reason from a project server, in characters.
const MaxText = 1000

// CutText returns the first MaxText characters of text.
func CutText(text string) string { return Truncate(text, MaxText) }

// CutReason returns the last MaxText characters of a reason: what went wrong is at the end of an output.
func CutReason(text string) string {
	if len(text) <= MaxText {
		return text
	}
	start := len(text)
	for range MaxText {
		_, size := utf8.DecodeLastRuneInString(text[:start])
		start -= size
	}
	if start == 0 {
		return text
	}
	return strings.Clone(text[start:])
}

// Truncate returns the first n characters of text. It copies them, so that a longer text can be freed.
func Truncate(text string, n int) string {
	if len(text) > n {
		for i := range text {
			if n == 0 {
				return strings.Clone(text[:i])
			}
			n--
		}
	}
	return text
}

// Cut returns text, or its beginning and an ellipsis if it has more than n characters.
func Cut(text string, n int) string {
	if len(Truncate(text, n)) == len(text) {
		return text
	}
	return strings.TrimRight(Truncate(text, n-1), " ") + "…"
}

func CutBytes(text string, n int) string {
	if len(text) > n {
		text = strings.ToValidUTF8(text[:n], "")
	}
	return text
}

// Map makes a list of one value for each element. It is never nil: an empty list must not be null in JSON.
func Map[T, V any](list []T, of func(T) V) []V {
	values := make([]V, len(list))
	for i, one := range list {
		values[i] = of(one)
	}
	return values
}

// SortFirst moves the items for which first holds before the others, and keeps the order otherwise.
func SortFirst[T any](list []T, first func(T) bool) {
	place := map[bool]int{true: 0, false: 1}
	slices.SortStableFunc(list, func(a, b T) int { return place[first(a)] - place[first(b)] })
}

// EncodeJSON encodes v without escaping <, > and &, which is safe given nosniff and the media type. It panics if v
// cannot be encoded.
func EncodeJSON(v any) []byte {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil { // only a programming mistake can get here
		panic(err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// Thousands returns a number with a separator between thousands: "12,345".
func Thousands[N int | int64](n N) string {
	digits := strconv.FormatInt(int64(n), 10)
	for at := len(digits) - 3; at > 0 && digits[at-1] != '-'; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits
}

// Count returns a number with its noun: "1 story", "3 stories".
func Count[N int | int64](n N, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return Thousands(n) + " " + many
}

// Secret is text that must not appear in a log, a page or an error: without Reveal, printers and encoders show
// "[redacted]" (or "" for an unset secret).
type Secret string

// Reveal returns the secret itself. Call it only where the secret is used or stored.
func (s Secret) Reveal() string { return string(s) }

func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return "[redacted]"
}

// FitsHeader reports whether the secret can be sent in an Authorization header: it is printable ASCII without spaces.
func (s Secret) FitsHeader() bool {
	return !strings.ContainsFunc(string(s), func(r rune) bool { return r <= ' ' || r > '~' })
}

// GoString keeps %#v from showing the secret.
func (s Secret) GoString() string { return s.String() }

// LogValue keeps slog from showing the secret.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText keeps JSON and TOML encoders from showing the secret.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
