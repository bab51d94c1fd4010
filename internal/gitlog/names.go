package gitlog

import (
	"slices"
	"strings"
	"unicode"
)

// numbered are the words after which a bare number counts as an id.
var numbered = []string{"task", "story", "issue", "bug", "feature"}

// namer finds the stories named by branches and commit messages.
type namer struct {
	byName  map[string][]string // by the words of the id
	longest int                 // the most words in an id
	words   *words
}

func newNamer(ids []string) *namer {
	n := &namer{byName: make(map[string][]string, len(ids)), words: newWords(ids)}
	for _, id := range ids {
		if fields := wordsOf(id); len(fields) > 0 {
			name := strings.Join(fields, " ")
			n.byName[name], n.longest = append(n.byName[name], id), max(n.longest, len(fields))
		}
	}
	return n
}

// wordsOf returns the runs of letters and digits in a text, in lower case.
func wordsOf(text string) []string {
	isOther := func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }
	return strings.FieldsFunc(strings.ToLower(text), isOther)
}

func isDigits(text string) bool { return strings.Trim(text, "0123456789") == "" }

// inBranch returns the stories that a branch is named after: where ids contain each other, the longest.
func (n *namer) inBranch(name string) (ids []string) {
	fields := wordsOf(name)
	end := 0 // of the longest so far
	for from := range fields {
		for to := min(len(fields), from+n.longest); to > from && to > end; to-- {
			found := n.byName[strings.Join(fields[from:to], " ")]
			if len(found) == 0 || to == from+1 && isDigits(fields[from]) && !follows(fields, from) {
				continue
			}
			ids, end = append(ids, found...), to
			break
		}
	}
	return ids
}

func follows(fields []string, at int) bool { return at > 0 && slices.Contains(numbered, fields[at-1]) }

// inMessage returns the stories that a message names.
func (n *namer) inMessage(message []byte) []string {
	var fields []string
	return slices.DeleteFunc(n.words.in(message), func(id string) bool {
		if !isDigits(id) {
			return false
		}
		if fields == nil {
			fields = wordsOf(string(message))
		}
		for i, field := range fields {
			if field == id && follows(fields, i) {
				return false
			}
		}
		return true
	})
}
