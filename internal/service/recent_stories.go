package service

import (
	"context"
	"fmt"
	"sync"
	"time"

	"switchyard/internal/domain"
)

// storyAge is how old a story may be on a page that refreshes itself.
const storyAge = 1500 * time.Millisecond

// recentStories caches stories that pages show, for all their readers. The zero value is ready for use.
type recentStories struct {
	mu    sync.Mutex
	byID  map[storyID]*recentStory
	swept time.Time
}

type recentStory struct {
	askedAt time.Time
	done    chan struct{} // closed when story and err are there
	story   domain.Story
	err     error
}

// Recent returns what Get does, at most storyAge old: any number of readers of a story cost its project one call in this
// time. What it returns is shared: nobody may change it.
func (s *Stories) Recent(ctx context.Context, project, id string) (domain.Story, error) {
	recent := s.recent.find(storyID{project, id}, func(found *recentStory) {
		// It outlives the request that began it, since others wait for it. It ends within the limits of StoryServers.
		found.story, found.err = s.Get(context.WithoutCancel(ctx), project, id)
	})
	select {
	case <-recent.done:
		return recent.story, recent.err
	case <-ctx.Done():
		return domain.Story{}, ctx.Err()
	}
}

// find returns the cached story, or begins to get it.
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
	go func() {
		defer close(found.done)
		defer func() {
			if cause := recover(); cause != nil { // its readers report it
				found.err = fmt.Errorf("panic: %v", cause)
			}
		}()
		get(found)
	}()
	return found
}

// forget makes the next reader of a story get it afresh.
func (r *recentStories) forget(id storyID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.byID, id)
}

// sweep drops stories that are too old to be read. Callers hold mu.
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
