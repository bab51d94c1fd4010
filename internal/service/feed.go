package service

import (
	"context"
	"slices"
	"time"

	"switchyard/internal/domain"
)

const (
	// feedSize is how many records the merged stream has when served as a project server's feed.
	feedSize = 500
	// feedBytes is the total size of its records, in bytes, above which older ones are left out. Our own project servers
	// stay below it.
	feedBytes = 8 << 20
)

// Since returns those of the newest 500 records whose timestamp_ms is greater than since, oldest first. If there are
// none it waits for one, for at most wait. When that time is over or ctx ends it returns nothing and no error.
func (s *Events) Since(ctx context.Context, since uint64, wait time.Duration) ([]domain.Event, error) {
	timeout := time.NewTimer(wait)
	defer timeout.Stop()
	for over := wait <= 0; ; {
		changed := s.Changed()
		newest, err := s.newest(ctx, feedSize)
		if err != nil {
			if ctx.Err() != nil && wait > 0 {
				return nil, nil
			}
			return nil, err
		}
		newest = slices.DeleteFunc(newest, func(e domain.Event) bool { return uint64(e.At.UnixMilli()) <= since })
		if len(newest) > 0 || over {
			return newest, nil
		}
		select {
		case <-changed:
		case <-timeout.C:
			over = true
		case <-ctx.Done():
			return nil, nil
		}
	}
}

// newest returns the newest n events, oldest first.
func (s *Events) newest(ctx context.Context, n int) ([]domain.Event, error) {
	var all []domain.Event
	q := domain.EventQuery{Backward: true, Limit: n}
	for size := 0; ; {
		page, err := s.Page(ctx, q)
		if err != nil {
			return nil, err
		}
		all = append(all, page.Events...)
		for _, e := range page.Events {
			size += len(e.JSON)
		}
		if q.Limit = n - len(all); !page.More || q.Limit <= 0 || size >= feedBytes {
			slices.Reverse(all)
			return all, nil
		}
		q.Before = all[len(all)-1].ID
	}
}
