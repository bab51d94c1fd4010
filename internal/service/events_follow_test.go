package service_test

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/service"
	"switchyard/internal/store/storetest"
)

func observedStream(t *testing.T, dir string) (*service.Service, *observedStore) {
	t.Helper()
	db := openStore(t, dir)
	svc, err := service.New(context.Background(), service.Options{Store: db, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return svc, db
}

// wantInMemory checks that a service has exactly these events after an id, in order, without reading the store.
func wantInMemory(t *testing.T, s *service.Service, db *observedStore, after int64, want ...int64) {
	t.Helper()
	before := db.queries.Load()
	if ids := eventIDs(t, s, domain.EventQuery{After: after}); !slices.Equal(ids, want) || db.queries.Load() != before {
		t.Errorf("after %d it has %v in memory, want %v", after, ids, want)
	}
}

func TestWhatAnotherGatewayAppendedIsReadBeforeOnesOwn(t *testing.T) {
	dir := storetest.Dir(t)
	one, atOne := observedStream(t, dir)
	other, atOther := observedStream(t, dir)
	recordFeed(t, one, moved("alpha", 1, 2500))
	changed := other.Events.Changed()
	recordFeed(t, other, moved("beta", 1, 2))
	<-changed
	recordFeed(t, one, moved("alpha", 2501, 2501), moved("gamma", 1, 1))
	wantInMemory(t, other, atOther, 2498, 2499, 2500, 2501, 2502)
	wantInMemory(t, one, atOne, 2498, 2499, 2500, 2501, 2502, 2503, 2504)
}

func TestReaderIsWokenByWhatAnotherGatewayAppends(t *testing.T) {
	dir := storetest.Dir(t)
	one, _ := observedStream(t, dir)
	other, db := observedStream(t, dir)
	news := make(chan struct{})
	var told sync.Mutex
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() {
		ended <- other.Events.Follow(ctx, func(domain.Topic) <-chan struct{} {
			told.Lock()
			defer told.Unlock()
			return news
		})
	}()
	for n := 1; n <= 3; n++ {
		recordFeed(t, one, moved("alpha", n, n))
		told.Lock()
		if n < 3 { // the last one's notification is lost
			close(news)
			news = make(chan struct{})
		}
		told.Unlock()
		page, err := other.Events.Wait(ctx, domain.EventQuery{After: int64(n - 1), Limit: 10}, time.Minute)
		if err != nil || len(page.Events) != 1 || page.Events[0].ID != int64(n) {
			t.Fatalf("after %d: %v, %v", n-1, page.Events, err)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	wantInMemory(t, other, db, 0, 1, 2, 3)
}
