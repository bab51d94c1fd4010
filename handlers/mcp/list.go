package mcp

import (
	"switchyard/internal/domain"
	"switchyard/internal/web"
)

const (
	// maxList is the most entries in a list, and maxListBytes their size: more would fill a model's context.
	maxList, maxListBytes = 50, 16 << 10
	// maxShown is the most that is shown of a name or reason, in bytes.
	maxShown = 300
)

// list takes the items that fit in an answer, at least one, and counts the rest.
type list[T any] struct {
	items []T
	more  int
	most  int // how many entries fit, 0 for maxList
	bytes int
}

func (l *list[T]) add(item T) {
	if l.most == 0 {
		l.most = maxList
	}
	if l.more == 0 && len(l.items) < l.most {
		if l.bytes += len(web.EncodeJSON(item)); l.bytes <= maxListBytes || len(l.items) == 0 {
			l.items = append(l.items, item)
			return
		}
	}
	l.more++
}

// shown returns the entries, never null as JSON.
func (l *list[T]) shown() []T { return append([]T{}, l.items...) }

// short cuts a text to maxShown.
func short(text string) string { return shorten(text, maxShown) }

// shorten cuts a text to a number of bytes, which is what it costs a model.
func shorten(text string, most int) string {
	if short := domain.CutBytes(text, most); short != text {
		return short + "…"
	}
	return text
}

// shortOrNull is null for "".
func shortOrNull(text string) *string { return web.OrNull(short(text)) }
