package service_test

import (
	"context"
	"log/slog"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/service"
	"switchyard/internal/store/storetest"
)

// postingBot is a bot that has posted the stream up to an event.
type postingBot struct {
	idleBot
	posted int64
}

func (b *postingBot) Posted(context.Context) (int64, error) { return b.posted, nil }

func TestOldEventsAreRemovedUnlessTheyAreStillNeeded(t *testing.T) {
	db := openStore(t, storetest.Dir(t))
	bot := &postingBot{posted: math.MaxInt64}
	s, err := service.New(t.Context(), service.Options{Store: db, Bot: bot, KeepEvents: time.Hour, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	for _, project := range []string{"alpha", "beta"} {
		for range 6 {
			n := int(s.Events.LastID())
			read := moved(project, n+1, n+100)
			read.ReceivedAt = time.Now().Add(-2 * time.Hour)
			recordFeed(t, s, read)
		}
	}
	young := moved("alpha", 2000, 2009)
	young.ReceivedAt = time.Now().Add(-30 * time.Minute)
	recordFeed(t, s, young)

	removed := func(want int, why string) {
		t.Helper()
		if n, err := service.RemoveExpired(t.Context(), s); n != want || err != nil {
			t.Errorf("%s: %d events were removed, %v, want %d", why, n, err, want)
		}
	}
	bot.posted = 80
	removed(80, "80 are posted")
	bot.posted = math.MaxInt64
	removed(30+100, "alpha had 610, beta 600")
	removed(0, "of each the last 500 are left")

	page, err := s.Events.Page(t.Context(), domain.EventQuery{After: 7, Limit: 1})
	if err != nil || len(page.Events) != 1 || page.Events[0].ID != 111 {
		t.Errorf("after a position that has gone comes %+v, %v", page.Events, err)
	}
	stored, err := s.Retention.Stored(t.Context())
	if age := time.Since(stored.Oldest); err != nil || stored.Size == 0 || age < 2*time.Hour || age > 3*time.Hour {
		t.Errorf("stored %+v, %v", stored, err)
	}
}

// slowRemoval is a store with many old events that it removes slowly.
type slowRemoval struct {
	*observedStore
	left  int
	each  time.Duration // for a row
	steps []removalStep
}

type removalStep struct {
	rows       int
	began, end time.Time
}

func (s *slowRemoval) EventProjects(context.Context) ([]string, error) { return []string{"alpha"}, nil }

func (s *slowRemoval) ExpiredEvents(_ context.Context, _ domain.ExpiryQuery, limit int) ([]int64, error) {
	n := min(limit, s.left)
	s.left -= n
	return make([]int64, n), nil
}

func (s *slowRemoval) RemoveEvents(_ context.Context, _ int64, ids []int64) error {
	began := time.Now()
	time.Sleep(time.Duration(len(ids)) * s.each)
	s.steps = append(s.steps, removalStep{len(ids), began, time.Now()})
	return nil
}

func TestRemovingManyEventsHoldsUpNoWriteForLong(t *testing.T) {
	for _, each := range []time.Duration{20 * time.Microsecond, 100 * time.Microsecond, 200 * time.Microsecond} {
		o := openStore(t, storetest.Dir(t))
		synctest.Test(t, func(t *testing.T) {
			slow := &slowRemoval{observedStore: o, left: 200_000, each: each}
			s, err := service.New(t.Context(), service.Options{
				Store: slow, Bot: &postingBot{posted: math.MaxInt64}, KeepEvents: time.Hour, Log: slog.New(slog.DiscardHandler),
			})
			if err != nil {
				t.Fatal(err)
			}
			if n, err := service.RemoveExpired(t.Context(), s); n != 200_000 || err != nil {
				t.Fatal(n, err)
			}
			var longest, working time.Duration
			for i, step := range slow.steps {
				took := step.end.Sub(step.began)
				longest, working = max(longest, took), working+took
				if i > 0 && step.began.Sub(slow.steps[i-1].end) < 2*time.Millisecond {
					t.Fatalf("step %d follows the one before at once", i)
				}
			}
			if all := slow.steps[len(slow.steps)-1].end.Sub(slow.steps[0].began); longest > 20*time.Millisecond || working > all/3 {
				t.Errorf("at %v a row the longest step takes %v, and writes are held up for %v of %v", each, longest, working, all)
			}
		})
	}
}
