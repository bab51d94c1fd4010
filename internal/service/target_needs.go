package service

import (
	"context"
	"time"

	"switchyard/internal/domain"
)

type targetStore interface {
	Targets(ctx context.Context) ([]domain.Target, error)
	AddTarget(ctx context.Context, e *domain.AuditEntry, t domain.Target) error
	ChangeTarget(ctx context.Context, id string, change func(t *domain.Target) (*domain.AuditEntry, error)) (
		domain.Target, error)
	RemoveTarget(ctx context.Context, e *domain.AuditEntry, id string) error
	ResendLast(ctx context.Context, e *domain.AuditEntry, id string, name func() string) error
	QueuedMessages(ctx context.Context, target string, limit int) ([]domain.QueuedMessage, error)
	CountQueued(ctx context.Context) (map[string]int, error)
	SaveTargets(ctx context.Context, token int64, saves []domain.TargetSave) error
	NotedAlerts(ctx context.Context) ([]domain.NotedAlert, error)
	SaveAlerts(ctx context.Context, token int64, noted []domain.NotedAlert, over []string) error
	AddDelivery(ctx context.Context, target string, d domain.Delivery) error
	Deliveries(ctx context.Context, target string, limit int) ([]domain.Delivery, error)
	DeliveryHours(ctx context.Context, since time.Time) ([]domain.DeliveryHour, error)
	Digest(ctx context.Context, id string) (domain.DigestRecord, error)
	Digests(ctx context.Context, target string, before time.Time, limit int) ([]domain.DigestRecord, error)
	RemoveDigests(ctx context.Context, token int64, hours, digests time.Time) error
	PushKeys(ctx context.Context) (domain.PushKeys, error)
	Identity(ctx context.Context) (string, error)
}

// Messenger sends messages to targets.
type Messenger interface {
	// Check returns whether an address is a webhook's, which signs. It returns Invalid for one that is no target's, or to
	// which nothing may be sent.
	Check(ctx context.Context, address domain.Secret) (signs bool, err error)
	// Shown returns an address without its secrets.
	Shown(address domain.Secret) string
	// Send sends the rest of a message. It takes at most 10 s.
	Send(ctx context.Context, t domain.Target, m domain.Message) domain.Sent
	// Describe returns an event as one line of text.
	Describe(e domain.Event, words domain.StageWords) string
}
