package service

import (
	"context"
	"maps"
	"slices"
	"sort"
	"sync"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/supervise"
)

const (
	// followInterval is how often the stream is checked for what other gateways appended, with or without a notice.
	followInterval = time.Second
	// followPage is how many events are read at once.
	followPage = 1000
)

// publish makes appended events visible to readers. Events between them and the tail were appended by other gateways, or by a
// transaction whose commit was not confirmed: they are read first.
func (s *Events) publish(ctx context.Context, appended domain.Appended) {
	s.publishing.Lock()
	defer s.publishing.Unlock()
	if appended.Last > s.tail.Load().last && s.readOn(ctx) != nil {
		s.skip(appended.Last)
	}
	last := s.tail.Load().last // some of them may have been read already
	from := sort.Search(len(appended.Added), func(i int) bool { return appended.Added[i].ID > last })
	s.show(appended.Added[from:])
}

// skip makes the tail start over after the id last. Readers find the skipped events in the store. Callers hold publishing.
func (s *Events) skip(last int64) {
	old := s.tail.Load()
	s.tail.Store(newTail(last))
	close(old.outdated)
}

// readOn makes visible what the store has after the tail. Callers hold publishing.
func (s *Events) readOn(ctx context.Context) error {
	since := s.reached.since.Load()
	if s.following.Load() && since != 0 {
		if err := s.recheck(ctx); err != nil {
			return err
		}
	}
	for more := true; more; {
		page, err := s.store.Events(ctx, domain.EventQuery{After: s.tail.Load().last, Limit: followPage})
		if s.following.Load() && ctx.Err() == nil {
			s.reached.note(since, err) // before readers are woken
			since = 0
		}
		if err != nil {
			return err
		}
		s.show(page.Events)
		more = page.More
	}
	return nil
}

// recheck makes the tail start over if the store no longer has what memory shows: a standby that took over may lack it. Callers
// hold publishing.
func (s *Events) recheck(ctx context.Context) error {
	tail := s.tail.Load()
	newest := tail.events[max(0, len(tail.events)-followPage):]
	if len(newest) == 0 {
		return nil
	}
	page, err := s.store.Events(ctx, domain.EventQuery{After: newest[0].ID - 1, Limit: len(newest)})
	if err != nil {
		return err
	}
	same := func(a, b domain.Event) bool { return a.ID == b.ID && a.Project == b.Project && a.At.Equal(b.At) }
	if page.More { // pages of huge events end early
		newest = newest[:len(page.Events)]
	}
	if !slices.EqualFunc(page.Events, newest, same) {
		s.skip(tail.last)
		s.searched.forget()
		s.restarts.Add(1)
	}
	return nil
}

// Follow shows what other gateways append, until ctx ends. Changed returns a channel that is closed at the next such change.
func (s *Events) Follow(ctx context.Context, changed func() <-chan struct{}) error {
	s.following.Store(true)
	var asides sync.WaitGroup // no event waits for them
	defer asides.Wait()
	asides.Go(func() {
		for failing := false; supervise.Sleep(ctx, followInterval); {
			if s.Available() == nil {
				_ = s.ahead.share(ctx)
				failing = s.tryWrite(ctx, failing)
			}
		}
	})
	tick := time.NewTicker(followInterval)
	defer tick.Stop()
	for {
		news := changed()
		s.publishing.Lock()
		_ = s.readOn(ctx) // failures are retried a second later; the store reports its own state
		s.publishing.Unlock()
		select {
		case <-news:
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// forgetRemoved makes events invisible that another gateway removed because they were older than before.
func (s *Events) forgetRemoved(ctx context.Context, before time.Time) error {
	s.searched.forget()
	tail := s.tail.Load()
	if len(tail.events) == 0 || !tail.events[0].ReceivedAt.Before(before) {
		return nil
	}
	removed := map[int64]bool{}
	for _, e := range tail.events {
		removed[e.ID] = true
	}
	for after, more := tail.first, true; more && after < tail.last; {
		page, err := s.store.Events(ctx, domain.EventQuery{After: after, Limit: followPage})
		if err != nil {
			return err
		}
		for _, e := range page.Events {
			delete(removed, e.ID)
			after = e.ID
		}
		more = page.More
	}
	if len(removed) > 0 {
		s.forget(slices.Sorted(maps.Keys(removed)))
	}
	return nil
}

// tryWrite writes something if the last write failed because the store was away: otherwise a gateway with nothing to write would
// stay unready for as long as that failure counts. It logs when writing begins to fail, unless it was failing, and when it
// succeeds again, and returns whether it fails.
func (s *Events) tryWrite(ctx context.Context, failing bool) bool {
	_, err := s.store.WriteFailure()
	if domain.CodeOf(err) == domain.Unavailable {
		_ = s.store.TryWrite(ctx)
		_, err = s.store.WriteFailure()
	}
	switch {
	case err != nil && !failing:
		s.log.ErrorContext(ctx, "the database takes no writes", "error", err)
	case err == nil && failing:
		s.log.InfoContext(ctx, "the database takes writes again")
	}
	return err != nil
}
