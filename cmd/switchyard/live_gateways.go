package main

import (
	"context"

	"switchyard/internal/domain"
)

// LiveGateways returns the live gateways that share the database, by their time of starting.
func (s *sharedDatabase) LiveGateways(ctx context.Context) ([]domain.LiveGateway, error) {
	live, leader, err := s.store.Lease().Gateways(ctx)
	if err != nil {
		return nil, domain.WrapError(domain.Unavailable, err, "the gateways cannot be listed: the database does not respond")
	}
	list := make([]domain.LiveGateway, len(live))
	for i, g := range live {
		list[i] = domain.LiveGateway{
			ID: g.ID, Name: g.Name, Since: g.StartedAt, Leads: g.ID == leader,
			Asked: g.ID == s.member.ID(),
		}
	}
	return list, nil
}
