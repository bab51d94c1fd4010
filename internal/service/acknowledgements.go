package service

import (
	"context"
	"maps"
	"sync"
	"sync/atomic"

	"switchyard/internal/domain"
)

type acknowledgementStore interface {
	Acknowledgements(ctx context.Context) ([]domain.Acknowledgement, error)
	Acknowledge(ctx context.Context, e *domain.AuditEntry, all ...domain.Acknowledgement) error
	EndAcknowledgements(ctx context.Context, e *domain.AuditEntry, ended ...domain.Acknowledgement) error
}

// acknowledgements keeps those that have not ended in memory, written through to the store.
type acknowledgements struct {
	store  acknowledgementStore
	audit  *Audit
	stored *reloader
	// change is held while store and memory are changed, so that the two agree.
	change  sync.Mutex
	current atomic.Pointer[acknowledgementsByKey] // replaced, never changed
}

type acknowledgementsByKey map[string]domain.Acknowledgement

func (s *acknowledgements) load(ctx context.Context) error {
	s.change.Lock()
	defer s.change.Unlock()
	stored, err := s.store.Acknowledgements(ctx)
	if err != nil {
		return err
	}
	byKey := make(acknowledgementsByKey, len(stored))
	for _, a := range stored {
		byKey[a.Key] = a
	}
	if !maps.Equal(*s.current.Load(), byKey) {
		s.current.Store(&byKey)
	}
	return nil
}

func (s *acknowledgements) edit(change func(acknowledgementsByKey)) {
	for {
		known := s.current.Load()
		next := maps.Clone(*known)
		change(next)
		if s.current.CompareAndSwap(known, &next) {
			return
		}
	}
}

// drop removes ended acknowledgements from memory, unless newer ones have replaced them.
func (s *acknowledgements) drop(ended []domain.Acknowledgement) {
	s.edit(func(byKey acknowledgementsByKey) {
		for _, a := range ended {
			if byKey[a.Key] == a {
				delete(byKey, a.Key)
			}
		}
	})
}

// add stores acknowledgements that are made together, as one change.
func (s *acknowledgements) add(ctx context.Context, change domain.Change, all ...domain.Acknowledgement) error {
	if until := all[0].Until; !until.IsZero() {
		change.Detail = details("until: "+exactTime(until), change.Detail)
	}
	s.change.Lock()
	defer s.change.Unlock()
	return s.audit.change(ctx, change, func(e *domain.AuditEntry) error { return s.store.Acknowledge(ctx, e, all...) },
		func() {
			s.edit(func(byKey acknowledgementsByKey) {
				for _, a := range all {
					byKey[a.Key] = a
				}
			})
		})
}

// takeBack ends those acknowledgements that are meant, as one change. It returns NotFound when there are none.
func (s *acknowledgements) takeBack(
	ctx context.Context, is func(domain.Acknowledgement) bool, change func(all []domain.Acknowledgement) domain.Change,
) error {
	if err := s.stored.refresh(ctx); err != nil {
		return err
	}
	s.change.Lock()
	defer s.change.Unlock()
	var all []domain.Acknowledgement
	for _, a := range *s.current.Load() {
		if is(a) {
			all = append(all, a)
		}
	}
	if len(all) == 0 {
		return alertNotFound()
	}
	made := change(all)
	made.Action = domain.AlertReopened
	return s.audit.change(ctx, made, func(e *domain.AuditEntry) error {
		return s.store.EndAcknowledgements(ctx, e, all...)
	}, func() { s.drop(all) })
}

func alertNotFound() error { return domain.Errorf(domain.NotFound, "no alert has this key") }
