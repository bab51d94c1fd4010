// Package fold removes case and accents from texts, so that they can be compared as people do.
package fold

import (
	"slices"
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

// Span is a part of a text, in bytes.
type Span struct{ From, To int }

// Find returns where a text contains one of the folded words, in order and without overlaps.
func Find(text string, words []string) (spans []Span) {
	folded := make([]byte, 0, len(text))
	origin := make([]int, 0, len(text)+1) // of each byte of folded: where its character begins in text
	for at, r := range text {
		part := Text(string(r))
		folded = append(folded, part...)
		for len(origin) < len(folded) {
			origin = append(origin, at)
		}
	}
	origin = append(origin, len(text))
	whole := string(folded)
	for _, word := range words {
		for at := 0; word != ""; {
			i := strings.Index(whole[at:], word)
			if i < 0 {
				break
			}
			end := at + i + len(word)
			to := origin[end]
			for end < len(folded) && to == origin[end-1] { // within a character that folds to several
				end++
				to = origin[end]
			}
			spans = append(spans, Span{origin[at+i], to})
			at = end
		}
	}
	return merged(spans)
}

func merged(spans []Span) []Span {
	slices.SortFunc(spans, func(a, b Span) int { return a.From - b.From })
	whole := spans[:0]
	for _, s := range spans {
		if last := len(whole) - 1; last >= 0 && s.From <= whole[last].To {
			whole[last].To = max(whole[last].To, s.To)
			continue
		}
		whole = append(whole, s)
	}
	return whole
}
