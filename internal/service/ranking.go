package service

import (
	"cmp"
	"slices"
	"strings"
)

// notOnBoard is added to the rank of stories that are on no board: others come first.
const notOnBoard = 10

// ranking keeps the best matches of what is searched.
type ranking[T any] struct {
	words []string
	whole string // the words with spaces between
	limit int
	found []ranked[T]
	added int
}

type ranked[T any] struct {
	rank  int // less is better
	key   string
	order int // in which it came
	value T
}

func newRanking[T any](words []string, limit int) *ranking[T] {
	return &ranking[T]{words: words, whole: strings.Join(words, " "), limit: limit}
}

// add ranks a value by its folded name and second name, and reports whether it matches at all.
func (r *ranking[T]) add(first, second string, value T, worse int) bool {
	for _, word := range r.words {
		if !strings.Contains(first, word) && !strings.Contains(second, word) {
			return false
		}
	}
	rank := worse
	switch {
	case first == r.whole || second == r.whole || strings.HasPrefix(first, r.whole+"_"): // "7" is 7_story_export
	case strings.HasPrefix(first, r.whole) || strings.HasPrefix(second, r.whole):
		rank++
	case strings.Contains(first, " "+r.whole) || strings.Contains(second, " "+r.whole) || strings.Contains(first, "_"+r.whole):
		rank += 2
	case strings.Contains(first, r.whole) || strings.Contains(second, r.whole):
		rank += 3
	default:
		rank += 4
	}
	r.added++
	r.found = append(r.found, ranked[T]{rank, cmp.Or(second, first), r.added, value})
	if len(r.found) >= 8*r.limit { // the others have no chance any more
		r.sort()
	}
	return true
}

// sort leaves the best matches, among equals the shorter ones first.
func (r *ranking[T]) sort() {
	slices.SortFunc(r.found, func(a, b ranked[T]) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(len(a.key), len(b.key)), cmp.Compare(a.key, b.key), cmp.Compare(a.order, b.order))
	})
	r.found = r.found[:min(r.limit, len(r.found))]
}

// best returns the best matches, at most limit.
func (r *ranking[T]) best() []T {
	r.sort()
	values := make([]T, len(r.found))
	for i, m := range r.found {
		values[i] = m.value
	}
	return values
}
