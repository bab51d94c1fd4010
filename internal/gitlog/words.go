package gitlog

import (
	"bytes"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxAlike is how many ids with the same first word are matched.
const maxAlike = 1000

// words finds any of many ids in a text, each as a word: neither preceded nor followed by a letter, digit or
// underscore. The cost depends on the length of the text, not on the number of ids.
type words struct {
	byWord map[string][]pattern // by the first run of word characters
}

// pattern is an id and the offset of its first run of word characters.
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

// at reports whether text has the id, as a word, with its first run of word characters at start.
func (p pattern) at(text []byte, start int) bool {
	if start < 0 || !bytes.HasPrefix(text[start:], []byte(p.id)) {
		return false
	}
	before, _ := utf8.DecodeLastRune(text[:start])
	after, _ := utf8.DecodeRune(text[start+len(p.id):])
	return !isWord(before) && !isWord(after)
}
