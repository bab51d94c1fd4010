package views

import (
	"slices"

	"switchyard/internal/domain"
)

// troubledFirst returns stories by trouble, and those that agents work on before the others, so that none of them is
// folded away while others are shown. The order of equal ones stays.
func (p ProjectProps) troubledFirst(items []domain.Item, atWork map[string]string) []domain.Item {
	order := func(item domain.Item) int {
		signal, _ := storyState(item, p.Stuck)
		return wagon{signal: signal, agent: atWork[item.StoryID]}.order()
	}
	return slices.SortedStableFunc(slices.Values(items), func(a, b domain.Item) int { return order(a) - order(b) })
}

// newestFirst returns stories by arrival, newest first: those finished long ago are folded away.
func newestFirst(items []domain.Item) []domain.Item {
	return slices.SortedStableFunc(slices.Values(items), func(a, b domain.Item) int { return b.Since.Compare(a.Since) })
}
