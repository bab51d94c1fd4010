package domain

import (
	"log/slog"
	"strings"
)

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
