package service

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
)

type Events struct {
	store   *database
	log     *slog.Logger
	visits  *Visits
	boards  *Pipelines
	news    leaderNews
	tail    newestTail
	reached reachability
	making  pendingChanges
	// following means that other gateways append as well, and that this one reads what they append.
	following atomic.Bool
	// observe, unless nil, is called once with each event that this gateway has stored, in order.
	observe func(added []domain.Event)

	mu      sync.Mutex
	queue   []*pendingRead
	writing bool // a goroutine is emptying the queue
}

// Cursors returns the reading positions for every URL that the project has ever had, in no particular order.
func (s *Events) Cursors(ctx context.Context, project string) ([]domain.FeedCursor, error) {
	return s.store.FeedCursors(ctx, project)
}

// Page returns the first q.Limit events that match q: by increasing id, with q.Backward by decreasing id, or with
// q.ByTime by decreasing timestamp. It reads the newest ids from memory. Pages of huge events are shorter. It returns
// Invalid for a filter that is too long, and Unavailable while a shared store cannot be reached, since memory then
// lacks what other gateways append.
func (s *Events) Page(ctx context.Context, q domain.EventQuery) (domain.EventPage, error) {
	if err := q.Check(); err != nil {
		return domain.EventPage{}, err
	}
	if err := s.Available(); err != nil {
		return domain.EventPage{}, err
	}
	q.Finishes = s.boards.Finishes
	if page, ok := s.tail.Load().find(q); ok && !q.ByTime {
		return page, nil
	}
	return s.store.Events(ctx, q)
}

// Beyond returns the newest id, and whether a position is beyond it: after a restore, nothing would follow such a
// position for a long time.
func (s *Events) Beyond(ctx context.Context, position int64) (newest int64, beyond bool, err error) {
	if newest = s.LastID(); position <= newest {
		return newest, false, s.Available()
	}
	given, err := s.store.LastEventID(ctx) // another gateway may just have announced an event
	newest = max(newest, given)
	return newest, position > newest, err
}

// Wait returns what Page returns for q, which must not be Backward unless wait is 0. If nothing matches it waits, for
// at most wait, for an event that does. When that time is over or ctx ends it returns an empty page and no error. It
// returns Invalid for a position beyond the newest event.
func (s *Events) Wait(ctx context.Context, q domain.EventQuery, wait time.Duration) (domain.EventPage, error) {
	newest, beyond, err := s.Beyond(ctx, q.After)
	if beyond && err == nil {
		err = domain.Errorf(domain.Invalid, "after: the newest event is %d; %d is from an earlier database, so begin again "+
			"after %d", newest, q.After, newest)
	}
	if err != nil {
		return domain.EventPage{}, err
	}
	if wait <= 0 {
		return s.Page(ctx, q)
	}
	late, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	for {
		tail := s.tail.Load()
		page, err := s.Page(ctx, q)
		switch {
		case err != nil && ctx.Err() != nil:
			return domain.EventPage{}, nil
		case len(page.Events) > 0 || err != nil:
			return page, err
		}
		q.After = max(q.After, tail.last) // nothing up to there matches
		select {
		case <-tail.outdated:
		case <-late.Done():
			return domain.EventPage{}, nil
		}
	}
}

func (s *Events) LastID() int64 { return s.tail.Load().last }

// Changed returns a channel that is closed when events are appended. Call it before reading events.
func (s *Events) Changed() <-chan struct{} { return s.tail.Load().outdated }

// AsOf returns the time up to which memory is up to date with the store, zero while it is current.
func (s *Events) AsOf() time.Time {
	if ms := s.reached.since.Load(); ms != 0 {
		return time.UnixMilli(ms)
	}
	return time.Time{}
}

// Available returns Unavailable while a shared store cannot be reached.
func (s *Events) Available() error {
	if s.reached.since.Load() != 0 {
		return domain.Errorf(domain.Unavailable, "the database cannot be reached")
	}
	return nil
}

// Latest returns the latest limit events of a project, or of all for "", by decreasing timestamp. While the store
// cannot be reached it returns those in memory.
func (s *Events) Latest(ctx context.Context, project string, limit int) ([]domain.Event, error) {
	q := domain.EventQuery{ByTime: true, Limit: limit, Project: project}
	page, err := s.Page(ctx, q)
	if domain.CodeOf(err) == domain.Unavailable {
		page, _ = s.tail.Load().find(domain.EventQuery{Backward: true, Limit: limit, Project: project})
		slices.SortStableFunc(page.Events, func(a, b domain.Event) int { return b.At.Compare(a.At) })
		return page.Events, nil
	}
	return page.Events, err
}

// maxChanges is how many changes are searched for who caused events.
const maxChanges = 5000

// WithAuthors returns the events, sorted oldest first, with who caused them. If they span a long time, that may be
// known only for the newest.
func (s *Events) WithAuthors(ctx context.Context, events []domain.Event) ([]domain.PastEvent, error) {
	if len(events) == 0 || s.Available() != nil {
		return s.Past(events, nil), nil
	}
	received := func(a, b domain.Event) int { return a.ReceivedAt.Compare(b.ReceivedAt) }
	from, to := slices.MinFunc(events, received).ReceivedAt, slices.MaxFunc(events, received).ReceivedAt
	making := s.making.now()
	changes, err := s.store.ChangesBetween(ctx, from.Add(-domain.ChangeSeen), to.Add(time.Second), maxChanges)
	return s.Past(events, withPending(changes, making)), err
}

// Past finds out who caused events, and which of them finished a story.
func (s *Events) Past(events []domain.Event, changes []domain.StoryChange) []domain.PastEvent {
	past := domain.History(events, changes)
	for i := range past {
		past[i].Finished = s.boards.Finishes(past[i].Event)
	}
	return past
}

type pendingRead struct {
	domain.FeedRead
	stored chan error // of capacity 1
}

const (
	// feedSize is how many records the merged stream has when served as a project server's feed.
	feedSize = 500
	// feedBytes is the size of records above which older ones are left out. Our own project servers stay below it.
	feedBytes = 8 << 20
)

// Since returns those of the newest 500 records whose timestamp_ms is greater than since, oldest first. If there are
// none it waits up to wait for one. When that time is over or ctx ends it returns nothing and no error.
func (s *Events) Since(ctx context.Context, since uint64, wait time.Duration) ([]domain.Event, error) {
	late, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	for {
		changed := s.Changed()
		newest, _, err := s.Newest(ctx, domain.EventQuery{Backward: true}, feedSize)
		slices.Reverse(newest)
		switch {
		case err != nil && ctx.Err() != nil && wait > 0:
			return nil, nil
		case err != nil:
			return nil, err
		}
		newest = slices.DeleteFunc(newest, func(e domain.Event) bool { return uint64(e.At.UnixMilli()) <= since })
		if len(newest) > 0 || late.Err() != nil {
			return newest, nil
		}
		select {
		case <-changed:
		case <-late.Done():
		}
	}
}

// Newest returns the first n events of a query, which must be Backward or ByTime, and reports whether there are more.
// It returns fewer if they are huge.
func (s *Events) Newest(ctx context.Context, q domain.EventQuery, n int) (all []domain.Event, more bool, err error) {
	for size := 0; ; {
		q.Limit = n - len(all)
		page, err := s.Page(ctx, q)
		if err != nil {
			return nil, false, err
		}
		all = append(all, page.Events...)
		for _, e := range page.Events {
			size += len(e.JSON)
		}
		if !page.More || len(all) >= n || size >= feedBytes {
			return all, page.More, nil
		}
		q.Before, q.BeforeAt = all[len(all)-1].ID, all[len(all)-1].At.UnixMilli()
	}
}

// reachability records when a shared store was last reached. The zero value means that it can be reached.
type reachability struct {
	last  atomic.Int64 // in milliseconds
	since atomic.Int64 // the same while it cannot be reached, otherwise 0
}

// record records the result of an attempt. since is the value of r.since when it began: an attempt that began before a
// failure says nothing about the time after it.
func (r *reachability) record(since int64, err error) {
	if err == nil {
		r.last.Store(clock.Now().UnixMilli())
		r.since.CompareAndSwap(since, 0)
	} else {
		r.since.CompareAndSwap(0, max(r.last.Load(), 1))
	}
}

const readyLimit = 2500 * time.Millisecond
