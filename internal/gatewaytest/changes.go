package gatewaytest

import (
	"context"
	"strconv"
	"sync/atomic"

	"switchyard/internal/domain"
)

// Changes are changes by other gateways on the same store, without notifications: each gateway checks for them once a
// second.
type Changes struct{ versions atomic.Int64 }

func (c *Changes) Changed(domain.Topic) <-chan struct{} { return nil }

func (c *Changes) Version(context.Context, domain.Topic) (string, error) {
	return strconv.FormatInt(c.versions.Add(1), 10), nil
}

func (c *Changes) VisitsSince(_ context.Context, position int64) ([]domain.Visit, []string, int64, error) {
	return nil, nil, position, nil
}
