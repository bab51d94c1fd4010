package service

import (
	"context"

	"switchyard/internal/domain"
)

// Messenger sends messages to targets.
type Messenger interface {
	// Check returns whether an address is that of a webhook, which signs. It returns Invalid if it is no target's
	// address, or nothing may be sent there.
	Check(ctx context.Context, address domain.Secret) (signs bool, err error)
	// Shown returns an address without its secrets.
	Shown(address domain.Secret) string
	// Send sends the rest of a message. It takes at most 10 s.
	Send(ctx context.Context, t domain.Target, m domain.Message) domain.SendResult
	// Describe returns an event as one line of text.
	Describe(e domain.Event, words domain.StageWords) string
}
