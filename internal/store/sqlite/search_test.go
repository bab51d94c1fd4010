package sqlite_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/store/sqlite"
)

func TestASearchThatTakesTooLongSaysSoAndHoldsUpNothing(t *testing.T) {
	sqlite.LimitSearches(t, time.Millisecond)
	db := openStore(t)
	appendEvents(t, db, feedRead("alpha", move(t, 1)))
	db.BusySearches(t)
	_, err := db.Events(t.Context(), domain.EventQuery{Text: "story", Limit: 10})
	if domain.CodeOf(err) != domain.Unavailable || !strings.Contains(domain.MessageOf(err), "too long") {
		t.Errorf("searching events: %v", err)
	}
	if _, err = db.FindStories(t.Context(), []string{"story"}, 10); domain.CodeOf(err) != domain.Unavailable {
		t.Errorf("searching stories: %v", err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err = db.Events(cancelled, domain.EventQuery{Text: "story", Limit: 10}); domain.CodeOf(err) == domain.Unavailable {
		t.Errorf("a search that nobody waits for: %v", err)
	}
	if page, err := db.Events(t.Context(), domain.EventQuery{Limit: 10}); err != nil || len(page.Events) != 1 {
		t.Errorf("reading meanwhile: %v, %v", page.Events, err)
	}
	if err := db.Ping(t.Context()); err != nil {
		t.Error(err)
	}
}
