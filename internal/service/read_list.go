package service

import (
	"context"
	"sync"
	"sync/atomic"

	"switchyard/internal/keyed"
)

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
