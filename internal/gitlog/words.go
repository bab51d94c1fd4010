package gitlog

import (
	"bytes"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxAlike is the number of ids with the same first word that are matched.
const maxAlike = 1000

// words finds any of many ids in texts, each as a word: with no letter, digit or underscore before or behind it. Its cost
// grows with the text, not with the number of ids.
type words struct {
	byWord map[string][]pattern // by the first run of word characters
}

// pattern is an id, and where its first run of word characters begins.
type pattern struct {
	id     string
	offset int
}

func newWords(ids []string) *words {
	w := &words{byWord: make(map[string][]pattern, len(ids))}
	for _, id := range ids {
		start := strings.IndexFunc(id, isWord)
		if start < 0 {
			continue // such an id is not a word
		}
		word := id[start:]
		if end := strings.IndexFunc(word, isNoWord); end >= 0 {
			word = word[:end]
		}
		if alike := w.byWord[word]; len(alike) < maxAlike {
			w.byWord[word] = append(alike, pattern{id, start})
		}
	}
	return w
}

func isWord(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

func isNoWord(r rune) bool { return !isWord(r) }

// in returns the ids that text has, each once.
func (w *words) in(text []byte) []string {
	var found []string
	for at := 0; at < len(text); {
		start := bytes.IndexFunc(text[at:], isWord)
		if start < 0 {
			break
		}
		start += at
		at = len(text)
		if end := bytes.IndexFunc(text[start:], isNoWord); end >= 0 {
			at = start + end
		}
		for _, p := range w.byWord[string(text[start:at])] {
			if p.at(text, start-p.offset) {
				found = append(found, p.id)
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// at reports whether the id is a word of text at that position.
func (p pattern) at(text []byte, start int) bool {
	if start < 0 || !bytes.HasPrefix(text[start:], []byte(p.id)) {
		return false
	}
	before, _ := utf8.DecodeLastRune(text[:start])
	after, _ := utf8.DecodeRune(text[start+len(p.id):])
	return !isWord(before) && !isWord(after)
}
