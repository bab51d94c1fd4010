package service

import (
	"context"
	"slices"

	"switchyard/internal/domain"
	"switchyard/internal/supervise"
)

// maxBatch is the number of records at which a transaction takes no further reads, so that reads of other feeds wait no
// longer than about 50 ms.
const maxBatch = 1000

// Record stores a read of a feed, all or nothing: its records, except those that the project has already, and the new
// reading position. It returns ErrNotLeader if another gateway leads now. Reads that arrive while others are being
// stored share a transaction, so that a burst over many feeds does not cost a synced write each.
func (s *Events) Record(ctx context.Context, read domain.FeedRead) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if read.Review == nil {
		s.news.recordClock(read)
	}
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

// writeReads stores the queue until it is empty.
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
			s.mu.Lock()
			reads, s.queue = append(reads, s.queue...), nil // one transaction instead of several
			s.mu.Unlock()
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
	s.visits.apply(appended.Visits)
	s.publish(context.Background(), appended)
	if s.observe != nil {
		s.observe(appended.Added)
	}
	return appended.Refused, nil
}
