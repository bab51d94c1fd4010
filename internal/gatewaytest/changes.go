package gatewaytest

import (
	"context"
	"strconv"
	"sync/atomic"
	"time"

	"switchyard/internal/domain"
)

// Changes are changes by other gateways on the same store, without notifications: each gateway checks for them once a second.
type Changes struct {
	Store interface {
		AgentRecords(ctx context.Context) ([]domain.AgentRecord, error)
	}
	versions atomic.Int64
}

func (c *Changes) Changed(domain.Topic) <-chan struct{} { return nil }

func (c *Changes) Version(context.Context, domain.Topic) (string, error) {
	return strconv.FormatInt(c.versions.Add(1), 10), nil
}

func (c *Changes) AgentsSince(ctx context.Context, _ int64) (domain.AgentNews, error) {
	records, err := c.Store.AgentRecords(ctx)
	news := domain.AgentNews{Count: len(records)}
	for _, r := range records {
		news.Changed = append(news.Changed, domain.SeenAgent{AgentRecord: r, Silent: time.Since(r.LastSeen)})
	}
	return news, err
}

func (c *Changes) AgentIDs(ctx context.Context) (ids []string, err error) {
	records, err := c.Store.AgentRecords(ctx)
	for _, r := range records {
		ids = append(ids, r.ID)
	}
	return ids, err
}
