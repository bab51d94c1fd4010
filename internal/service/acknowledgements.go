package service

import (
	"context"
	"slices"

	"switchyard/internal/domain"
)

// acknowledgements holds the current ones in memory, by key, written through to the store.
type acknowledgements struct {
	table[string, domain.Acknowledgement]
	store *database
	audit *Audit
	ended chan []domain.Acknowledgement // no longer in memory, but still in the store
}

func (s *acknowledgements) add(ctx context.Context, change domain.Change, all ...domain.Acknowledgement) error {
	if until := all[0].Until; !until.IsZero() {
		change.Detail = details("until: "+exactTime(until), change.Detail)
	}
	return s.write(ctx, func(ctx context.Context) ([]domain.Acknowledgement, []string, error) {
		return all, nil, s.audit.change(ctx, change, func(e *domain.AuditEntry) error {
			return s.store.Acknowledge(ctx, e, all...)
		})
	})
}

// takeBack ends the matching acknowledgements as one change. It returns NotFound if there are none.
func (s *acknowledgements) takeBack(
	ctx context.Context, meant func(domain.Acknowledgement) bool, change func(all []domain.Acknowledgement) domain.Change,
) error {
	if err := s.reloader.refresh(ctx); err != nil {
		return err
	}
	return s.write(ctx, func(ctx context.Context) ([]domain.Acknowledgement, []string, error) {
		all := slices.DeleteFunc(slices.Clone(s.list()), func(a domain.Acknowledgement) bool { return !meant(a) })
		if len(all) == 0 {
			return nil, nil, alertNotFound()
		}
		made := change(all)
		made.Action = domain.AlertReopened
		return nil, domain.Map(all, s.key), s.audit.change(ctx, made, func(e *domain.AuditEntry) error {
			return s.store.EndAcknowledgements(ctx, e, all...)
		})
	})
}

func alertNotFound() error { return domain.Errorf(domain.NotFound, "no alert has this key") }
