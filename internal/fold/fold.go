// Package fold makes texts comparable that people take for the same: case and accents are left out. It knows nothing of
// Switchyard.
package fold

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// Text returns text without case and accents: "Überblick" and "uberblick" are the same, as are "Straße" and "STRASSE".
func Text(text string) string {
	if isPlain(text) {
		return strings.ToLower(text)
	}
	decomposed := norm.NFKD.String(text)
	bare := strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Mn, r) {
			return -1
		}
		return r
	}, decomposed)
	return cases.Fold().String(bare)
}

func isPlain(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
