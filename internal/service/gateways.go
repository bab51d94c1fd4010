package service

import (
	"context"

	"switchyard/internal/domain"
)

// GatewayList lists the live gateways that share the store, sorted by their time of starting.
type GatewayList interface {
	LiveGateways(ctx context.Context) ([]domain.LiveGateway, error)
}
