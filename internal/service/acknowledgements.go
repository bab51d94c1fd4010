package service

import (
	"context"
	"maps"
	"sync"

	"switchyard/internal/domain"
)

type acknowledgementStore interface {
	Acknowledgements(ctx context.Context) ([]domain.Acknowledgement, error)
	Acknowledge(ctx context.Context, all ...domain.Acknowledgement) error
	EndAcknowledgements(ctx context.Context, ended ...domain.Acknowledgement) error
}

// acknowledgements mirrors in memory the stored acknowledgements that have not ended.
type acknowledgements struct {
	stored *reloader
	// change is held while store and memory are changed, so that the two agree. It is never taken while holding mu.
	change sync.Mutex

	mu    sync.Mutex
	byKey map[string]domain.Acknowledgement
}

// find returns the acknowledgement of an alert, nil if there is none.
func (a *acknowledgements) find(key string) *domain.Acknowledgement {
	a.mu.Lock()
	defer a.mu.Unlock()
	if found, known := a.byKey[key]; known {
		return &found
	}
	return nil
}

func loadAcknowledgements(ctx context.Context, store acknowledgementStore) (*acknowledgements, error) {
	a := &acknowledgements{}
	_, err := a.load(ctx, store)
	return a, err
}

// load brings memory up to date with the store. It reports whether anything has changed.
func (a *acknowledgements) load(ctx context.Context, store acknowledgementStore) (changed bool, err error) {
	a.change.Lock()
	defer a.change.Unlock()
	stored, err := store.Acknowledgements(ctx)
	if err != nil {
		return false, err
	}
	byKey := make(map[string]domain.Acknowledgement, len(stored))
	for _, one := range stored {
		byKey[one.Key] = one
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	changed = !maps.Equal(a.byKey, byKey)
	a.byKey = byKey
	return changed, nil
}
