package domain

import (
	"log/slog"
	"strings"
)

// Secret is text that must not reach a log, a page or an error: every printer and encoder that does not
// call Reveal shows "[redacted]" (an unset secret shows as "").
type Secret string

// Reveal returns the secret itself. Call it only where the secret is used or stored.
func (s Secret) Reveal() string { return string(s) }

func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return "[redacted]"
}

// FitsHeader reports whether an Authorization header can carry the secret: printable ASCII without spaces.
func (s Secret) FitsHeader() bool {
	return !strings.ContainsFunc(string(s), func(r rune) bool { return r <= ' ' || r > '~' })
}

// GoString keeps %#v from showing the secret.
func (s Secret) GoString() string { return s.String() }

// LogValue keeps slog from showing the secret.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText keeps JSON and TOML encoders from showing the secret.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
