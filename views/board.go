package views

import (
	"slices"

	"switchyard/internal/domain"
)

// newestFirst returns stories in the order of their arrival, the last one first: what was done long ago is folded away.
func newestFirst(items []domain.Item) []domain.Item {
	return slices.SortedStableFunc(slices.Values(items), func(a, b domain.Item) int { return b.Since.Compare(a.Since) })
}
