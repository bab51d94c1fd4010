package main

import (
	"context"

	"switchyard/internal/domain"
)

// LiveGateways returns the live gateways that share the database, by their time of starting.
func (s *sharedDatabase) LiveGateways(ctx context.Context) ([]domain.LiveGateway, error) {
	live, err := s.store.Duties().Gateways(ctx)
	if err != nil {
		return nil, domain.WrapError(domain.Unavailable, err, "the gateways cannot be listed: the database does not respond")
	}
	own := s.member.ID()
	list := make([]domain.LiveGateway, len(live))
	for i, g := range live {
		list[i] = domain.LiveGateway{
			ID: g.ID, Name: g.Name, Since: g.StartedAt, Feeds: g.Feeds, Duties: g.Duties, RunsBot: g.Bot, Asked: g.ID == own,
		}
	}
	return list, nil
}
