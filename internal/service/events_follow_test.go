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
	"switchyard/internal/waittest"
)

// observed collects the ids of the events that a service shows.
type observed struct {
	mu  sync.Mutex
	ids []int64
}

func (o *observed) add(added []domain.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, e := range added {
		o.ids = append(o.ids, e.ID)
	}
}

func (o *observed) all() []int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.ids)
}

func observedStream(t *testing.T, dir string) (*service.Service, *observed, *observedStore) {
	t.Helper()
	db, seen := openStore(t, dir), &observed{}
	svc, err := service.New(context.Background(), service.Options{Store: db, Log: slog.New(slog.DiscardHandler), Observe: seen.add})
	if err != nil {
		t.Fatal(err)
	}
	return svc, seen, db
}

func TestWhatAnotherGatewayAppendedIsReadBeforeOnesOwn(t *testing.T) {
	dir := t.TempDir()
	one, seenByOne, _ := observedStream(t, dir)
	other, seenByOther, db := observedStream(t, dir)
	recordFeed(t, one, moved("alpha", 1, 2500))
	changed := other.Events.Changed()
	recordFeed(t, other, moved("beta", 1, 2))
	<-changed
	recordFeed(t, one, moved("alpha", 2501, 2501), moved("gamma", 1, 1))
	if ids := seenByOther.all(); len(ids) != 2502 || !slices.IsSorted(ids) || ids[2501] != 2502 {
		t.Errorf("the other one saw %d events", len(ids))
	}
	if ids := seenByOne.all(); len(ids) != 2504 || !slices.IsSorted(ids) || ids[2503] != 2504 {
		t.Errorf("the first one saw %d events", len(ids))
	}
	before := db.queries.Load()
	if ids := eventIDs(t, other, domain.EventQuery{After: 2498}); !slices.Equal(ids, []int64{2499, 2500, 2501, 2502}) || db.queries.Load() != before {
		t.Errorf("the other one has %v in memory", ids)
	}
}

func TestReaderIsWokenByWhatAnotherGatewayAppends(t *testing.T) {
	dir := t.TempDir()
	one, _, _ := observedStream(t, dir)
	other, seen, _ := observedStream(t, dir)
	news := make(chan struct{})
	var told sync.Mutex
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() {
		ended <- other.Events.Follow(ctx, func() <-chan struct{} {
			told.Lock()
			defer told.Unlock()
			return news
		})
	}()
	for n := 1; n <= 3; n++ {
		recordFeed(t, one, moved("alpha", n, n))
		told.Lock()
		if n < 3 { // the last one's notice is lost
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
	waittest.Until(t, "every event is seen once", func() bool { return slices.Equal(seen.all(), []int64{1, 2, 3}) })
}
