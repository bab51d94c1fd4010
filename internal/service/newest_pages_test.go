package service_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/service"
	"switchyard/internal/store/sqlite"
	"switchyard/internal/store/storetest"
)

// searchedStore counts the searches in it.
type searchedStore struct {
	*sqlite.DB
	searches int
}

func (s *searchedStore) Events(ctx context.Context, q domain.EventQuery) (domain.EventPage, error) {
	s.searches++
	return s.DB.Events(ctx, q)
}

func TestTheSameSearchIsMadeOnce(t *testing.T) {
	db, err := sqlite.Open(t.Context(), storetest.Dir(t))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	counted := &searchedStore{DB: db}
	s, err := service.New(t.Context(), service.Options{Store: counted, AgentTimeout: time.Minute, JoinTokenTTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	record := func(text string) {
		r, err := domain.ParseRecord([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Events.Record(t.Context(), domain.FeedRead{Cursor: domain.FeedCursor{Project: "a"}, Records: []domain.Record{r}}); err != nil {
			t.Fatal(err)
		}
	}
	find := func(text string, want int) {
		t.Helper()
		page, err := s.Events.Page(t.Context(), domain.EventQuery{Backward: true, Limit: 10, Text: text})
		if err != nil || len(page.Events) != want {
			t.Errorf("%s: %d events, %v; want %d", text, len(page.Events), err, want)
		}
	}
	find("one", 0) // also while there is no event at all
	counted.searches = 0
	record(`{"type":"note","text":"one","timestamp_ms":1}`)
	find("one", 1)
	find("one", 1)
	find("two", 0)
	find("two", 0)
	if counted.searches != 1 { // for two
		t.Errorf("%d searches for two texts, one of them known already", counted.searches)
	}
	record(`{"type":"note","text":"one two","timestamp_ms":2}`)
	find("one", 2)
	find("two", 1)
	for n := range 20 {
		record(fmt.Sprintf(`{"type":"note","text":"One and Zwö","timestamp_ms":%d}`, 3+n))
		find("one", min(3+n, 10))
		find("two", 1)
	}
	find("ZWO", 10)
	if counted.searches != 2 {
		t.Errorf("%d searches for three texts", counted.searches)
	}
}
