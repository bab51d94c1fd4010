package service

import (
	"context"
	"encoding/json"
	"maps"
	"sync"
	"time"

	"switchyard/internal/domain"
)

// AheadProject is a project whose feed has timestamps far ahead of the gateway's clock.
type AheadProject struct {
	Project string
	Since   time.Time // when that was noticed
}

// skewKey is the key of the state that the leader stores for other gateways.
const skewKey = "clocks_ahead"

type skewStore interface {
	State(ctx context.Context, key string) (string, error)
	SetLeaderState(ctx context.Context, token int64, key, value string) error
}

// clockSkew keeps the projects whose last read had such timestamps. The leader, which reads the feeds, stores them for the others.
type clockSkew struct {
	store  skewStore
	leader Leadership

	mu     sync.Mutex
	since  map[string]time.Time
	stored string // the stored form, as last read or written
}

// note records what a read shows.
func (c *clockSkew) note(read domain.FeedRead) {
	c.mu.Lock()
	defer c.mu.Unlock()
	project := read.Cursor.Project
	_, known := c.since[project]
	if known == !read.Ahead.IsZero() {
		return
	}
	since := maps.Clone(c.since)
	if since == nil {
		since = map[string]time.Time{}
	}
	if known {
		delete(since, project)
	} else {
		since[project] = read.ReceivedAt
	}
	c.since = since
}

// share stores what the leader has noticed, or reads it on other gateways.
func (c *clockSkew) share(ctx context.Context) error {
	if isAlone(c.leader) {
		return nil
	}
	c.mu.Lock()
	since, stored := c.since, c.stored
	c.mu.Unlock()
	if token, leads := c.leader.Token(); leads {
		text, err := json.Marshal(since)
		if err == nil && string(text) != stored {
			err = c.store.SetLeaderState(ctx, token, skewKey, string(text))
		}
		if err == nil {
			c.mu.Lock()
			c.stored = string(text)
			c.mu.Unlock()
		}
		return err
	}
	text, err := c.store.State(ctx, skewKey)
	if err != nil || text == stored || text == "" {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stored, c.since = text, nil
	return json.Unmarshal([]byte(text), &c.since)
}

// Ahead returns the projects whose clocks are ahead, in no particular order. Some may have been removed.
func (s *Events) Ahead() []AheadProject {
	s.skew.mu.Lock()
	defer s.skew.mu.Unlock()
	var found []AheadProject
	for project, since := range s.skew.since {
		found = append(found, AheadProject{project, since})
	}
	return found
}
