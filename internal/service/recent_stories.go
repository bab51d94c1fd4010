package service

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/supervise"
)

// storyAge is how old a story may be on a page that refreshes itself.
const storyAge = 1500 * time.Millisecond

// recentStories caches stories that pages show, for all their readers.
type recentStories struct {
	log   *slog.Logger
	mu    sync.Mutex
	byID  map[storyID]*recentStory
	swept time.Time
}

type recentStory struct {
	askedAt time.Time
	done    chan struct{} // closed when story and err are set
	story   domain.Story
	err     error
}

// Recent is Get with a result that may be storyAge old, so that any number of readers cost the project one call in that time. The
// result is shared and must not be changed.
func (s *Stories) Recent(ctx context.Context, project, id string) (domain.Story, error) {
	recent := s.recent.find(storyID{project, id}, func(found *recentStory) {
		// The call outlives the request that caused it, since others may wait for it. It ends within the limits of StoryServers.
		found.story, found.err = s.Get(context.WithoutCancel(ctx), project, id)
	})
	select {
	case <-recent.done:
		return recent.story, recent.err
	case <-ctx.Done():
		return domain.Story{}, ctx.Err()
	}
}

// find returns the cached story, or begins to get it by calling get in the background.
func (r *recentStories) find(id storyID, get func(*recentStory)) *recentStory {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	r.sweep(now)
	if found := r.byID[id]; found != nil && now.Sub(found.askedAt) < storyAge {
		return found
	}
	if r.byID == nil {
		r.byID = map[storyID]*recentStory{}
	}
	found := &recentStory{askedAt: now, done: make(chan struct{})}
	r.byID[id] = found
	supervise.Go(r.log, "story", func() {
		defer close(found.done)
		if err := supervise.Call(func() error { get(found); return nil }); err != nil {
			found.err = err // its callers report it
		}
	})
	return found
}

// forget removes a story from the cache.
func (r *recentStories) forget(id storyID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.byID, id)
}

// sweep removes stories that are too old. The caller holds mu.
func (r *recentStories) sweep(now time.Time) {
	if now.Sub(r.swept) < storyAge {
		return
	}
	r.swept = now
	for id, found := range r.byID {
		if now.Sub(found.askedAt) >= storyAge {
			delete(r.byID, id)
		}
	}
}
