package service

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"switchyard/internal/domain"
	"switchyard/internal/keyed"
)

// table keeps a topic of the store in memory, reloaded when another gateway may have changed it. A change costs nothing
// for the rows it does not touch, except the list, which is rebuilt when it is next read.
type table[K comparable, V any] struct {
	read     func(context.Context) ([]V, error)
	key      func(V) K
	compare  func(a, b V) int      // the order of list, nil for any
	same     func(a, b V) bool     // whether two rows with the same key are equal
	edited   func(before, now []V) // unless nil, called with the rows that a change removed and added
	reloader *reloader

	change sync.Mutex // held while store and memory are changed, so that the two agree
	mu     sync.RWMutex
	rows   map[K]V
	edits  int           // how often rows have changed
	sorted []V           // nil after a change until somebody asks for it
	news   keyed.Waiters // by the key as text, "" for any
}

// write makes a change in the store and, once that succeeds, in memory: store returns the rows that are new or have
// changed, and the keys of those that are gone. The end of ctx does not interrupt it, as that would leave it unknown
// whether the change was stored.
func (t *table[K, V]) write(ctx context.Context, store func(context.Context) (now []V, gone []K, err error)) error {
	t.change.Lock()
	defer t.change.Unlock()
	now, gone, err := store(context.WithoutCancel(ctx))
	if err == nil {
		t.edit(now, gone...)
	}
	return err
}

// load brings memory up to date with the store.
func (t *table[K, V]) load(ctx context.Context) error {
	t.change.Lock()
	defer t.change.Unlock()
	t.mu.RLock()
	gone := maps.Clone(t.rows)
	t.mu.RUnlock()
	stored, err := t.read(ctx)
	if err != nil {
		return err
	}
	for _, v := range stored {
		delete(gone, t.key(v))
	}
	t.edit(stored, slices.Collect(maps.Keys(gone))...)
	return nil
}

// edit puts rows in and takes others out, in memory, and wakes those waiting for them.
func (t *table[K, V]) edit(put []V, gone ...K) { t.editIf(func(V) bool { return true }, put, gone...) }

// forget takes rows out, in memory, unless others have replaced them.
func (t *table[K, V]) forget(same func(a, b V) bool, rows ...V) {
	meant := func(known V) bool { return slices.ContainsFunc(rows, func(v V) bool { return same(known, v) }) }
	t.editIf(meant, nil, domain.Map(rows, t.key)...)
}

// drop takes out of memory the rows that the store has ended already, and reports whether there were any.
func (t *table[K, V]) drop(ended func(V) bool) bool {
	t.change.Lock()
	defer t.change.Unlock()
	gone := t.keys(ended)
	t.edit(nil, gone...)
	return len(gone) > 0
}

// keys returns the keys of matching rows, unordered.
func (t *table[K, V]) keys(meant func(V) bool) (keys []K) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for key, v := range t.rows {
		if meant(v) {
			keys = append(keys, key)
		}
	}
	return keys
}

// editIf is edit, but takes out only matching rows.
func (t *table[K, V]) editIf(meant func(V) bool, put []V, gone ...K) {
	var before, now []V
	woken := []string{""}
	t.mu.Lock()
	if t.rows == nil {
		t.rows = map[K]V{}
	}
	for _, v := range put {
		key := t.key(v)
		old, known := t.rows[key]
		if known && t.same(old, v) {
			continue
		}
		if known {
			before = append(before, old)
		}
		t.rows[key], now, woken = v, append(now, v), append(woken, fmt.Sprint(key))
	}
	for _, key := range gone {
		if old, known := t.rows[key]; known && meant(old) {
			delete(t.rows, key)
			before, woken = append(before, old), append(woken, fmt.Sprint(key))
		}
	}
	if len(woken) > 1 {
		t.edits, t.sorted = t.edits+1, nil
	}
	t.mu.Unlock()
	if len(woken) == 1 {
		return
	}
	if t.edited != nil {
		t.edited(before, now)
	}
	t.news.Wake(woken...)
}

func (t *table[K, V]) get(key K) (V, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	v, known := t.rows[key]
	return v, known
}

func (t *table[K, V]) version() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.edits
}

// list returns all rows in order; callers must not change them.
func (t *table[K, V]) list() []V {
	t.mu.RLock()
	sorted := t.sorted
	t.mu.RUnlock()
	if sorted != nil {
		return sorted
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.sorted == nil {
		t.sorted = slices.Collect(maps.Values(t.rows))
		if t.compare != nil {
			slices.SortFunc(t.sorted, t.compare)
		}
	}
	return t.sorted
}

// changed returns a channel that is closed when a row may have changed. Call it before reading the row.
func (t *table[K, V]) changed(key K) <-chan struct{} { return t.news.Changed(fmt.Sprint(key)) }

// changedAny is changed for all rows.
func (t *table[K, V]) changedAny() <-chan struct{} { return t.news.Changed("") }
