package views

import (
	"slices"

	"switchyard/internal/domain"
)

// newestFirst returns stories by arrival, newest first: those finished long ago are folded away.
func newestFirst(items []domain.Item) []domain.Item {
	return slices.SortedStableFunc(slices.Values(items), func(a, b domain.Item) int { return b.Since.Compare(a.Since) })
}
