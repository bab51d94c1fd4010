package service

import (
	"context"
	"slices"
	"sort"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/supervise"
)

const (
	// followInterval is how often to check for events that other gateways have appended, even without a notification.
	followInterval = time.Second
	// followPage is how many events are read at once.
	followPage = 1000
)

// publish makes appended events visible to readers. If there are events between them and the tail, appended by other
// gateways or by a transaction whose commit was not confirmed, it reads those first.
func (s *Events) publish(ctx context.Context, appended domain.AppendResult) {
	s.tail.publishing.Lock()
	defer s.tail.publishing.Unlock()
	if appended.Last > s.tail.Load().last && s.readOn(ctx) != nil {
		s.tail.skip(appended.Last)
	}
	last := s.tail.Load().last // some of the events may have been read already
	from := sort.Search(len(appended.Added), func(i int) bool { return appended.Added[i].ID > last })
	s.tail.show(appended.Added[from:])
}

// readOn appends the store's events after the tail to it. The caller holds publishing.
func (s *Events) readOn(ctx context.Context) error {
	since := s.reached.since.Load()
	if s.following.Load() && since != 0 {
		if err := s.recheck(ctx); err != nil {
			return err
		}
	}
	for more := true; more; {
		limited, cancel := context.WithTimeout(ctx, readyLimit)
		page, err := s.store.Events(limited, domain.EventQuery{After: s.tail.Load().last, Limit: followPage})
		cancel()
		if s.following.Load() && ctx.Err() == nil {
			s.reached.record(since, err) // before readers are woken
			since = 0
		}
		if err != nil {
			return err
		}
		s.tail.show(page.Events)
		more = page.More
	}
	return nil
}

// recheck makes the tail start over if the store no longer has its events: a standby database that has taken over may
// lack them. The caller holds publishing.
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
		s.tail.skip(tail.last)
		s.visits.Forget()
	}
	return nil
}

// Follow reads what other gateways append, until ctx ends. changed returns a channel that is closed at the next change
// of the topic of events.
func (s *Events) Follow(ctx context.Context, changed func(domain.Topic) <-chan struct{}) error {
	s.following.Store(true)
	asides := supervise.New(ctx, s.log) // for work that must not delay events
	defer asides.Wait()
	asides.Go("writes", func(ctx context.Context) error {
		for failing := false; supervise.Sleep(ctx, followInterval); {
			if s.Available() == nil {
				_ = s.news.share(ctx)
				failing = s.tryWrite(ctx, failing)
			}
		}
		return nil
	})
	for ctx.Err() == nil {
		news := changed(domain.TopicEvents)
		s.tail.publishing.Lock()
		_ = s.readOn(ctx) // a failure is retried a second later, and the store logs it
		s.tail.publishing.Unlock()
		supervise.Await(ctx, news, followInterval) // after the last read: a fixed pace would delay some news
	}
	return nil
}

// forgetOld makes the tail start over if it begins with an event that was received before before: another gateway may
// have removed it from the store.
func (s *Events) forgetOld(before time.Time) {
	s.tail.publishing.Lock()
	defer s.tail.publishing.Unlock()
	if tail := s.tail.Load(); len(tail.events) > 0 && tail.events[0].ReceivedAt.Before(before) {
		s.tail.skip(tail.last)
	}
}

// tryWrite makes a harmless write if the last write failed because the store could not be reached: otherwise a gateway
// with nothing to write would stay unready for as long as that failure counts. It logs when writes begin or cease to
// fail, given whether they were failing, and returns whether they fail now.
func (s *Events) tryWrite(ctx context.Context, failing bool) bool {
	_, err := s.store.WriteFailure()
	if domain.CodeOf(err) == domain.Unavailable {
		_ = s.store.TryWrite(ctx)
		_, err = s.store.WriteFailure()
	}
	switch {
	case err != nil && !failing:
		s.log.ErrorContext(ctx, "the database does not accept writes", "error", err)
	case err == nil && failing:
		s.log.InfoContext(ctx, "the database accepts writes again")
	}
	return err != nil
}
