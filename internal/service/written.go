package service

import (
	"context"
	"maps"
	"sync"
	"sync/atomic"

	"switchyard/internal/keyed"
)

// written is a table in memory that is written through to the store.
type written[K, V comparable] struct {
	read   func(context.Context) ([]V, error)
	key    func(V) K
	edited func(before, now map[K]V) // unless nil, is called after each change in memory
	stored *reloader
	// change is held while store and memory are changed, so that the two agree.
	change  sync.Mutex
	current atomic.Pointer[map[K]V] // replaced, never changed
}

func (w *written[K, V]) load(ctx context.Context) error {
	w.change.Lock()
	defer w.change.Unlock()
	stored, err := w.read(ctx)
	if err != nil {
		return err
	}
	w.edit(func(table map[K]V) {
		clear(table)
		for _, v := range stored {
			table[w.key(v)] = v
		}
	})
	return nil
}

// edit changes the table in memory, and keeps the one before if they are equal.
func (w *written[K, V]) edit(edit func(table map[K]V)) {
	for {
		known := w.current.Load()
		next := maps.Clone(*known)
		edit(next)
		if maps.Equal(*known, next) {
			return
		}
		if w.current.CompareAndSwap(known, &next) {
			if w.edited != nil {
				w.edited(*known, next)
			}
			return
		}
	}
}

// readList is a list in memory as it was last read from the store.
type readList[T any] struct {
	read    func(context.Context) ([]T, error)
	loading sync.Mutex          // what is read later replaces what was read earlier
	current atomic.Pointer[[]T] // replaced, never changed
	news    keyed.Waiters       // for another current
}

func (l *readList[T]) load(ctx context.Context) error {
	l.loading.Lock()
	defer l.loading.Unlock()
	list, err := l.read(ctx)
	if err != nil {
		return err
	}
	l.current.Store(&list)
	l.news.Wake("")
	return nil
}
