package service

import (
	"errors"

	"switchyard/internal/domain"
)

// Leadership says whether this gateway leads. If several gateways share the store, one of them does at a time: it
// follows the feeds, keeps the visits, and runs the bot and retention.
type Leadership interface {
	Leads() bool
	// Token returns the fencing token for the leader's writes, which the store refuses once another gateway has taken
	// over; false if this gateway does not lead.
	Token() (token int64, leads bool)
	// Changed returns a channel that is closed when this gateway begins or ceases to lead. Call it before Leads or Token.
	Changed() <-chan struct{}
}

// alone is the leadership of a gateway that shares its store with no other. No write is refused under token 0.
type alone struct{}

func (alone) Leads() bool { return true }

func (alone) Token() (int64, bool) { return 0, true }

func (alone) Changed() <-chan struct{} { return nil }

// isAlone reports whether this gateway always leads.
func isAlone(l Leadership) bool { return l == alone{} }

// unlessLost returns err, nil if another gateway has taken over the lead in the meantime.
func unlessLost(err error) error {
	if errors.Is(err, domain.ErrNotLeader) {
		return nil
	}
	return err
}
