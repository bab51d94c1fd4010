// Package fold removes case and accents from texts, so that they can be compared as people do.
package fold

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// Text returns text folded: "Überblick" and "uberblick" become equal, as do "Straße" and "STRASSE".
func Text(text string) string {
	if !strings.ContainsFunc(text, func(r rune) bool { return r >= utf8.RuneSelf }) {
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
