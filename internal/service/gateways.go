package service

import (
	"context"

	"switchyard/internal/domain"
)

// GatewayList lists the live gateways that share the store, sorted by their time of starting.
type GatewayList interface {
	LiveGateways(ctx context.Context) ([]domain.LiveGateway, error)
}

// Gateways returns the live gateways that share the store, sorted by their time of starting; none if there is only this one.
func (s *Service) Gateways(ctx context.Context) ([]domain.LiveGateway, error) {
	if s.gateways == nil {
		return nil, nil
	}
	if err := s.Events.Available(); err != nil {
		return nil, err
	}
	return s.gateways.LiveGateways(ctx)
}
