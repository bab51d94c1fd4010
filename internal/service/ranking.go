package service

import (
	"cmp"
	"slices"
	"strings"
)

// ranking keeps the best matches of a search, up to limit, and counts all.
type ranking[T any] struct {
	words []string
	whole string // the words with spaces between
	limit int
	total int
	found []ranked[T] // the best among them, in any order
}

type ranked[T any] struct {
	rank  int // less is better
	key   string
	value T
}

func newRanking[T any](words []string, limit int) *ranking[T] {
	return &ranking[T]{words: words, whole: strings.Join(words, " "), limit: limit}
}

// rank returns how well a folded name and second name match, less being better, and whether they match at all.
func (r *ranking[T]) rank(first, second string) (rank int, matches bool) {
	for _, word := range r.words {
		if !strings.Contains(first, word) && !strings.Contains(second, word) {
			return 0, false
		}
	}
	switch {
	case first == r.whole || second == r.whole || strings.HasPrefix(first, r.whole+"_"): // "7" is 7_story_export
		return 0, true
	case strings.HasPrefix(first, r.whole) || strings.HasPrefix(second, r.whole):
		return 1, true
	case strings.Contains(first, " "+r.whole) || strings.Contains(second, " "+r.whole) ||
		strings.Contains(first, "_"+r.whole):
		return 2, true
	case strings.Contains(first, r.whole) || strings.Contains(second, r.whole):
		return 3, true
	}
	return 4, true
}

// add counts a match, and keeps it if it is among the best. Within a rank the shorter key wins, then the lesser key,
// then the earlier match.
func (r *ranking[T]) add(rank int, key string, value T) {
	r.total++
	r.found = append(r.found, ranked[T]{rank, key, value})
	if len(r.found) >= 2*r.limit {
		r.cut()
	}
}

// cut leaves the best matches, in order.
func (r *ranking[T]) cut() {
	slices.SortStableFunc(r.found, func(a, b ranked[T]) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(len(a.key), len(b.key)), cmp.Compare(a.key, b.key))
	})
	r.found = r.found[:min(len(r.found), r.limit)]
}

func (r *ranking[T]) best() []T {
	r.cut()
	values := make([]T, len(r.found))
	for i, m := range r.found {
		values[i] = m.value
	}
	return values
}
