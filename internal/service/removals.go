package service

import (
	"context"
	"crypto/rand"
	"slices"
	"sync"

	"switchyard/internal/domain"
)

// Removals keeps removals that can still be undone, each under an id. They contain tokens, so pages show only the id.
type Removals interface {
	KeepRemoval(ctx context.Context, id string, r domain.Removal) error
	// TakeRemoval returns the removal with this id, once. It returns NotFound when there is none.
	TakeRemoval(ctx context.Context, id string) (domain.Removal, error)
}

// KeepRemoval keeps a removal for a limited time, so that it can be undone, and returns its id.
func (s *Projects) KeepRemoval(ctx context.Context, r domain.Removal) (id string, err error) {
	id = rand.Text()
	return id, s.removals.KeepRemoval(ctx, id, r)
}

// UndoRemoval undoes the removal with this id. It returns NotFound when it can no longer be undone, and Conflict when the name has
// been taken.
func (s *Projects) UndoRemoval(ctx context.Context, id string) (r domain.Removal, agents int, err error) {
	if r, err = s.removals.TakeRemoval(ctx, id); err != nil {
		if domain.CodeOf(err) == domain.NotFound {
			err = domain.WrapError(domain.NotFound, err, "This can no longer be undone. Add the project again.")
		}
		return r, 0, err
	}
	agents, err = s.Restore(ctx, r)
	return r, agents, err
}

// removals keeps the last removals in memory, if no other gateway shares the store.
type removals struct {
	mu   sync.Mutex
	last []keptRemoval
}

type keptRemoval struct {
	id string
	domain.Removal
}

func (l *removals) KeepRemoval(_ context.Context, id string, r domain.Removal) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.last) == domain.MaxRemovals {
		l.last = slices.Delete(l.last, 0, 1)
	}
	l.last = append(l.last, keptRemoval{id, r})
	return nil
}

func (l *removals) TakeRemoval(_ context.Context, id string) (domain.Removal, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.IndexFunc(l.last, func(kept keptRemoval) bool { return kept.id == id })
	if i < 0 {
		return domain.Removal{}, domain.Errorf(domain.NotFound, "there is no such removal")
	}
	kept := l.last[i]
	l.last = slices.Delete(l.last, i, i+1)
	return kept.Removal, nil
}
