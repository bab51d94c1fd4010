package service

import (
	"cmp"
	"slices"
	"strings"
)

// notOnBoard is added to the rank of stories that are on no board, so that others come first.
const notOnBoard = 10

// ranking keeps the best matches of a search, at most limit.
type ranking[T any] struct {
	words []string
	whole string // the words with spaces between
	limit int
	found []ranked[T] // the best first
}

type ranked[T any] struct {
	rank  int // less is better
	key   string
	value T
}

func newRanking[T any](words []string, limit int) *ranking[T] {
	return &ranking[T]{words: words, whole: strings.Join(words, " "), limit: limit}
}

// rank returns how well a folded name and second name match, less being better, and whether they do at all.
func (r *ranking[T]) rank(first, second string) (rank int, matches bool) {
	for _, word := range r.words {
		if !strings.Contains(first, word) && !strings.Contains(second, word) {
			return 0, false
		}
	}
	switch {
	case first == r.whole || second == r.whole || hasWord(first, r.whole): // "7" is 7_story_export
		return 0, true
	case strings.HasPrefix(first, r.whole) || strings.HasPrefix(second, r.whole):
		return 1, true
	case hasWordAfter(first, r.whole, ' ') || hasWordAfter(second, r.whole, ' ') || hasWordAfter(first, r.whole, '_'):
		return 2, true
	case strings.Contains(first, r.whole) || strings.Contains(second, r.whole):
		return 3, true
	}
	return 4, true
}

func hasWord(id, word string) bool {
	return len(id) > len(word) && id[len(word)] == '_' && strings.HasPrefix(id, word)
}

// hasWordAfter reports whether text contains word right after the character after.
func hasWordAfter(text, word string, after byte) bool {
	for at := 0; ; {
		i := strings.Index(text[at:], word)
		if i < 0 {
			return false
		}
		if at += i; at > 0 && text[at-1] == after {
			return true
		}
		at++
	}
}

// takes reports whether a match of this rank could be among the best.
func (r *ranking[T]) takes(rank int, key string) bool {
	return !r.full() || len(r.found) > 0 && compareRanked(rank, key, r.found[len(r.found)-1]) < 0
}

func (r *ranking[T]) full() bool { return len(r.found) >= r.limit }

// add adds a match if it is among the best. Within a rank the shorter key wins, then the lesser key, then the earlier
// match.
func (r *ranking[T]) add(rank int, key string, value T) {
	if !r.takes(rank, key) {
		return
	}
	at := len(r.found)
	for at > 0 && compareRanked(rank, key, r.found[at-1]) < 0 {
		at--
	}
	if r.full() {
		r.found = r.found[:len(r.found)-1]
	}
	r.found = slices.Insert(r.found, at, ranked[T]{rank, key, value})
}

func compareRanked[T any](rank int, key string, other ranked[T]) int {
	return cmp.Or(cmp.Compare(rank, other.rank), cmp.Compare(len(key), len(other.key)), cmp.Compare(key, other.key))
}

func (r *ranking[T]) best() []T {
	values := make([]T, len(r.found))
	for i, m := range r.found {
		values[i] = m.value
	}
	return values
}
