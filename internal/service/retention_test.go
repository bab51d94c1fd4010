package service_test

import (
	"context"
	"log/slog"
	"math"
	"testing"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/service"
)

// postingBot is a bot that has posted the stream up to an event.
type postingBot struct {
	idleBot
	posted int64
}

func (b *postingBot) Posted(context.Context) (int64, error) { return b.posted, nil }

func TestOldEventsAreRemovedUnlessTheyAreStillNeeded(t *testing.T) {
	db := openStore(t, t.TempDir())
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
		if n, err := s.Retention.RemoveExpired(t.Context()); n != want || err != nil {
			t.Errorf("%s: %d events were removed, %v, want %d", why, n, err, want)
		}
	}
	removed(0, "none is counted among where stories have been")
	if err := db.SaveStays(t.Context(), domain.StayChanges{UpTo: 50}); err != nil {
		t.Fatal(err)
	}
	removed(50, "50 are counted")
	if err := db.SaveStays(t.Context(), domain.StayChanges{UpTo: 1210}); err != nil {
		t.Fatal(err)
	}
	bot.posted = 80
	removed(30, "80 are posted")
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
