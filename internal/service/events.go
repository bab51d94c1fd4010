package service

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/supervise"
)

type eventStore interface {
	// AppendEvents stores reads with their positions in one transaction, except those that it refuses.
	AppendEvents(ctx context.Context, reads []domain.FeedRead) (domain.Appended, error)
	Events(ctx context.Context, q domain.EventQuery) (domain.EventPage, error)
	LastEventID(ctx context.Context) (int64, error)
	FeedCursors(ctx context.Context, project string) ([]domain.FeedCursor, error)
	newsStore
	// TryWrite makes a harmless write, which updates WriteFailure.
	TryWrite(ctx context.Context) error
}

// maxBatch is the number of records from which a transaction takes no further read, so that reads of other feeds wait no longer
// than about 50 ms.
const maxBatch = 1000

// Events is the merged stream: a queue of reads to be stored, the newest stored events in memory, and the store.
type Events struct {
	store eventStore
	log   *slog.Logger
	news  leaderNews
	tail  atomic.Pointer[tail]
	// publishing is held while the tail is replaced and while the events after it are read.
	publishing sync.Mutex
	reached    reached
	// following means that other gateways append as well, and that this one reads what they append.
	following atomic.Bool
	// restarts counts how often the store has lost events that memory had.
	restarts atomic.Int64
	// observe, unless nil, is called once with each event that this gateway has stored, in their order.
	observe func(added []domain.Event)

	mu      sync.Mutex
	queue   []*pendingRead
	writing bool // a goroutine is emptying the queue
}

// pendingRead is a queued read. Its caller waits for stored.
type pendingRead struct {
	domain.FeedRead
	stored chan error // of capacity 1
}

// load makes s continue after the stored events.
func (s *Events) load(ctx context.Context) error {
	last, err := s.store.LastEventID(ctx)
	if err != nil {
		return err
	}
	s.tail.Store(newTail(last))
	return nil
}

// Cursors returns the reading positions for every URL that the project has ever had, in no particular order.
func (s *Events) Cursors(ctx context.Context, project string) ([]domain.FeedCursor, error) {
	return s.store.FeedCursors(ctx, project)
}

// Record stores a read of a feed, all or nothing: its records, except those that the project has already, and the new reading
// position. It returns ErrNotLeader when another gateway leads now. Reads that arrive while others are being stored
// share a transaction, so that a burst over many feeds does not cost a synced write each.
func (s *Events) Record(ctx context.Context, read domain.FeedRead) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.news.note(read)
	pending := &pendingRead{read, make(chan error, 1)}
	s.mu.Lock()
	s.queue = append(s.queue, pending)
	if !s.writing {
		s.writing = true
		supervise.Go(s.log, "events", s.writeReads)
	}
	s.mu.Unlock()
	return <-pending.stored
}

// writeReads stores what is queued until nothing is.
func (s *Events) writeReads() {
	for {
		s.mu.Lock()
		batch, records := 0, 0
		for batch < len(s.queue) && records < maxBatch {
			records += len(s.queue[batch].Records)
			batch++
		}
		reads := s.queue[:batch:batch]
		if s.queue = s.queue[batch:]; len(s.queue) == 0 {
			s.queue = nil // frees what was stored
		}
		s.writing = batch > 0
		s.mu.Unlock()
		if batch == 0 {
			return
		}
		var refused []int
		err := supervise.Call(func() (err error) { refused, err = s.storeReads(reads); return err })
		if domain.CodeOf(err) == domain.Unavailable {
			reads = append(reads, s.takeQueue()...) // one transaction instead of several
		}
		for i, read := range reads {
			if err == nil && slices.Contains(refused, i) {
				read.stored <- domain.ErrNotLeader
			} else {
				read.stored <- err
			}
		}
	}
}

// takeQueue empties the queue.
func (s *Events) takeQueue() []*pendingRead {
	s.mu.Lock()
	defer s.mu.Unlock()
	queue := s.queue
	s.queue = nil
	return queue
}

// storeReads stores a batch. It returns the indexes of refused reads.
func (s *Events) storeReads(batch []*pendingRead) (refused []int, err error) {
	reads := make([]domain.FeedRead, len(batch))
	for i, pending := range batch {
		reads[i] = pending.FeedRead
	}
	// A caller that gives up must not roll back the reads of others.
	appended, err := s.store.AppendEvents(context.Background(), reads)
	if err != nil {
		return nil, err
	}
	s.publish(context.Background(), appended)
	if s.observe != nil {
		s.observe(appended.Added)
	}
	return appended.Refused, nil
}

// Page returns the first q.Limit events that match q: by increasing id, or with q.Backward by decreasing id. It reads the newest
// ones from memory. Pages of huge events are shorter. It returns Invalid for a filter that is too long, and Unavailable while a
// shared store cannot be reached, since memory then lacks what other gateways append.
func (s *Events) Page(ctx context.Context, q domain.EventQuery) (domain.EventPage, error) {
	if err := q.Check(); err != nil {
		return domain.EventPage{}, err
	}
	if err := s.Available(); err != nil {
		return domain.EventPage{}, err
	}
	if page, ok := s.tail.Load().find(q); ok {
		return page, nil
	}
	return s.store.Events(ctx, q)
}

// Wait returns what Page returns for q, which must not be Backward. If nothing matches it waits, for at most wait, for an event
// that does. When that time is over or ctx ends it returns an empty page and no error.
func (s *Events) Wait(ctx context.Context, q domain.EventQuery, wait time.Duration) (domain.EventPage, error) {
	timeout := time.NewTimer(wait)
	defer timeout.Stop()
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
		case <-timeout.C:
			return domain.EventPage{}, nil
		case <-ctx.Done():
			return domain.EventPage{}, nil
		}
	}
}

// LastID returns the greatest id in the merged stream, 0 if it is empty.
func (s *Events) LastID() int64 { return s.tail.Load().last }

// Changed returns a channel that is closed when events are appended. Call it before reading events.
func (s *Events) Changed() <-chan struct{} { return s.tail.Load().outdated }
