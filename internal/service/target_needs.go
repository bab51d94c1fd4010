package service

import (
	"context"

	"switchyard/internal/domain"
)

// Messenger sends messages to targets.
type Messenger interface {
	// Check returns whether an address is a webhook's, which signs. It returns Invalid for one that is no target's, or to
	// which nothing may be sent.
	Check(ctx context.Context, address domain.Secret) (signs bool, err error)
	// Shown returns an address without its secrets.
	Shown(address domain.Secret) string
	// Send sends the rest of a message. It takes at most 10 s.
	Send(ctx context.Context, t domain.Target, m domain.Message) domain.SendResult
	// Describe returns an event as one line of text.
	Describe(e domain.Event, words domain.StageWords) string
}
