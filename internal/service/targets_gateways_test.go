package service_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/pgtest"
	"switchyard/internal/service"
	"switchyard/internal/store/postgres"
	"switchyard/internal/store/storetest"
	"switchyard/internal/waittest"
)

// lead is a leadership that a test passes on.
type lead struct {
	mu      sync.Mutex
	token   int64
	changed chan struct{}
}

func (l *lead) Leads() bool { _, leads := l.Token(); return leads }

func (l *lead) Token() (int64, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.token, l.token != 0
}

func (l *lead) Changed() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changed
}

func (l *lead) set(token int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.token = token
	close(l.changed)
	l.changed = make(chan struct{})
}

// TestTheLeadOverTargetsIsPassedOn: each gateway goes on where the other has been, and one that does not know yet that another has
// taken over stores nothing.
func TestTheLeadOverTargetsIsPassedOn(t *testing.T) {
	url, box := pgtest.Database(t), &postbox{takes: 5 * time.Millisecond}
	var all []*service.Service
	var leads []*lead
	var stores []*postgres.DB
	for i := range 2 {
		db, err := postgres.Open(context.Background(), url)
		if err != nil {
			t.Fatal(err)
		}
		l := &lead{changed: make(chan struct{})}
		db.Refused = func(int64) {}
		s, err := service.New(t.Context(), service.Options{
			Leadership: l, Store: db, Changes: db, Log: slog.New(slog.DiscardHandler), AgentTimeout: time.Minute, JoinTokenTTL: time.Hour,
			Bot: &postingBot{}, Messenger: box,
		})
		if err != nil {
			t.Fatal(i, err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		var loops sync.WaitGroup
		follow := func(ctx context.Context) error {
			return s.Events.Follow(ctx, db.Changed)
		}
		for _, run := range []func(context.Context) error{db.Run, s.Sync, follow, s.Targets.Run} {
			loops.Go(func() { _ = run(ctx) })
		}
		t.Cleanup(func() { cancel(); loops.Wait(); db.Close() })
		all, leads, stores = append(all, s), append(leads, l), append(stores, db)
	}
	token := storetest.Lead(t, stores[0].Lease(), "first")
	leads[0].set(token)
	_, err := all[1].Targets.Add(t.Context(), domain.Target{Name: "one", URL: "https://hooks.example/", Enabled: true, Rules: domain.TargetRules{
		Events: []domain.EventType{domain.StoryBlocked}, Digest: domain.NoDigest, DigestAt: "08:00", TimeZone: "UTC",
	}})
	if err != nil {
		t.Fatal(err)
	}
	read := domain.FeedRead{Cursor: domain.FeedCursor{Project: "alpha", URL: "http://alpha"}, ReceivedAt: time.Now()}
	for i := range 90 {
		r, err := domain.ParseRecord(fmt.Appendf(nil, `{"type":"story_blocked","story_id":"%d","story_name":"S","reason":"r","timestamp_ms":%d}`, i, i+1))
		if err != nil {
			t.Fatal(err)
		}
		read.Records = append(read.Records, r)
	}
	recordFeed(t, all[0], read)
	count := func() int { return len(box.ids()) }
	for i := 1; i < 5; i++ {
		before := count()
		waittest.Until(t, "some are told", func() bool { return count() >= min(before+20, 90) })
		next := storetest.Lead(t, stores[0].Lease(), fmt.Sprint("number ", i)) // the one before does not know that yet
		leads[i%2].set(next)
		leads[(i+1)%2].set(0)
	}
	different := func() int { ids := box.ids(); slices.Sort(ids); return len(slices.Compact(ids)) }
	waittest.Until(t, "all are told", func() bool { return different() == 90 })
	if repeated := count() - different(); repeated > 4 {
		t.Errorf("%d messages came twice in four changes of the lead", repeated)
	}
}
