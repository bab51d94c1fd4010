package service_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/service"
	"switchyard/internal/store/sqlite"
	"switchyard/internal/store/storetest"
	"switchyard/internal/waittest"
)

// observedStore counts what reaches the database and can make the next append fail or hang.
type observedStore struct {
	*sqlite.DB
	appends, queries atomic.Int64
	fail             func(commit func() error) error // nil: commit
}

func (o *observedStore) AppendEvents(ctx context.Context, reads []domain.FeedRead) (appended domain.AppendResult, err error) {
	o.appends.Add(1)
	commit := func() error {
		appended, err = o.DB.AppendEvents(ctx, reads)
		return err
	}
	if o.fail == nil {
		err = commit()
	} else {
		err = o.fail(commit)
	}
	return appended, err
}

func (o *observedStore) Events(ctx context.Context, q domain.EventQuery) (domain.EventPage, error) {
	o.queries.Add(1)
	return o.DB.Events(ctx, q)
}

func openStore(t testing.TB, dir string) *observedStore {
	t.Helper()
	db, err := sqlite.Open(context.Background(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return &observedStore{DB: db}
}

func streamOver(t testing.TB, s service.Store) *service.Service {
	t.Helper()
	svc, err := service.New(context.Background(), service.Options{Store: s, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return svc
}

// moved returns a read of project's feed with the moves of stories n to m.
func moved(project string, n, m int) domain.FeedRead {
	read := domain.FeedRead{ReceivedAt: time.UnixMilli(1), Cursor: domain.FeedCursor{Project: project, URL: "http://" + project, Since: int64(m)}}
	for i := n; i <= m; i++ {
		r, err := domain.ParseRecord(json.RawMessage(fmt.Sprintf(`{"type":"stage_transition","story_id":"%d_story","timestamp_ms":%d}`, i, i)))
		if err != nil {
			panic(err)
		}
		read.Records = append(read.Records, r)
	}
	return read
}

func recordFeed(t testing.TB, svc *service.Service, reads ...domain.FeedRead) {
	t.Helper()
	for _, read := range reads {
		if err := svc.Events.Record(context.Background(), read); err != nil {
			t.Fatal(err)
		}
	}
}

func eventIDs(t testing.TB, svc *service.Service, q domain.EventQuery) []int64 {
	t.Helper()
	if q.Limit == 0 {
		q.Limit = 1000
	}
	page, err := svc.Events.Page(context.Background(), q)
	if err != nil {
		t.Fatal(err)
	}
	var ids []int64
	for _, e := range page.Events {
		ids = append(ids, e.ID)
	}
	return ids
}

// holdFirst keeps the first transaction from being committed: held is closed when it is about to be, and closing release lets it
// continue.
func (o *observedStore) holdFirst() (held, release chan struct{}) {
	held, release = make(chan struct{}), make(chan struct{})
	o.fail = func(commit func() error) error {
		if o.appends.Load() == 1 {
			close(held)
			<-release
		}
		return commit()
	}
	return held, release
}

func TestReadsThatComeWhileOneIsStoredShareATransaction(t *testing.T) {
	db := openStore(t, storetest.Dir(t))
	svc := streamOver(t, db)
	held, release := db.holdFirst()
	var done sync.WaitGroup
	record := func(project string) {
		done.Go(func() {
			if err := svc.Events.Record(context.Background(), moved(project, 1, 1)); err != nil {
				t.Error(err)
			}
			if cursors, err := svc.Events.Cursors(context.Background(), project); err != nil || len(cursors) != 1 {
				t.Errorf("%s: the recorder returned before its position was stored: %v, %v", project, cursors, err)
			}
		})
	}
	record("first")
	<-held
	for i := range 200 {
		record(fmt.Sprint("p", i))
	}
	waittest.Until(t, "200 reads are queued", func() bool { return service.QueuedReads(svc) == 200 })
	close(release)
	done.Wait()
	if n := db.appends.Load(); n != 2 {
		t.Errorf("%d transactions for one read and then 200 at once, want 2", n)
	}
	if ids := eventIDs(t, svc, domain.EventQuery{}); len(ids) != 201 || ids[200] != 201 || svc.Events.LastID() != 201 {
		t.Errorf("%d events, last id %d", len(ids), svc.Events.LastID())
	}
}

func TestHugeReadsDoNotShareATransaction(t *testing.T) {
	db := openStore(t, storetest.Dir(t))
	svc := streamOver(t, db)
	held, release := db.holdFirst()
	var done sync.WaitGroup
	done.Go(func() { _ = svc.Events.Record(context.Background(), moved("first", 1, 1)) })
	<-held
	for i := range 3 {
		done.Go(func() { _ = svc.Events.Record(context.Background(), moved(fmt.Sprint("p", i), 1, 1000)) })
	}
	waittest.Until(t, "three reads are queued", func() bool { return service.QueuedReads(svc) == 3 })
	close(release)
	done.Wait()
	if n := db.appends.Load(); n != 4 || svc.Events.LastID() != 3001 {
		t.Errorf("%d transactions, last id %d", n, svc.Events.LastID())
	}
}

func TestFailedReadIsNotStoredAndStoringItAgainDoublesNothing(t *testing.T) {
	broken := errors.New("disk full")
	for _, c := range []struct {
		name string
		fail func(commit func() error) error
	}{
		{"before the commit", func(func() error) error { return broken }},
		{"after the commit", func(commit func() error) error { _ = commit(); return broken }},
		{"by a panic", func(func() error) error { panic("torn") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			db := openStore(t, storetest.Dir(t))
			svc := streamOver(t, db)
			recordFeed(t, svc, moved("alpha", 1, 2))
			changed := svc.Events.Changed()
			db.fail = c.fail
			if err := svc.Events.Record(context.Background(), moved("alpha", 3, 4)); err == nil {
				t.Fatal("no error")
			}
			db.fail = nil
			recordFeed(t, svc, moved("alpha", 3, 4))
			<-changed
			if ids := eventIDs(t, svc, domain.EventQuery{After: 1}); !slices.Equal(ids, []int64{2, 3, 4}) || svc.Events.LastID() != 4 {
				t.Errorf("events %v, last id %d", ids, svc.Events.LastID())
			}
			recordFeed(t, svc, moved("alpha", 3, 5), moved("beta", 1, 1))
			if ids := eventIDs(t, svc, domain.EventQuery{After: 3}); !slices.Equal(ids, []int64{4, 5, 6}) {
				t.Errorf("then events %v", ids)
			}
		})
	}
}

func TestEndedRecorderStoresNothing(t *testing.T) {
	svc := streamOver(t, openStore(t, storetest.Dir(t)))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := svc.Events.Record(ctx, moved("alpha", 1, 1)); !errors.Is(err, context.Canceled) || svc.Events.LastID() != 0 {
		t.Errorf("%v, last id %d", err, svc.Events.LastID())
	}
}

// TestMemoryAndStoreAnswerAlike compares a service that has its events in memory with one that does not.
func TestMemoryAndStoreAnswerAlike(t *testing.T) {
	dir := storetest.Dir(t)
	db := openStore(t, dir)
	inMemory := streamOver(t, db)
	blocked, _ := domain.ParseRecord(json.RawMessage(`{"type":"story_blocked","story_id":"1","reason":"key","timestamp_ms":9}`))
	recordFeed(t, inMemory, moved("alpha", 1, 5), moved("beta", 1, 5),
		domain.FeedRead{Cursor: domain.FeedCursor{Project: "alpha"}, Records: []domain.Record{blocked}})
	inStore := streamOver(t, openStore(t, dir))
	for _, project := range []string{"", "alpha", "none"} {
		for _, kind := range []domain.EventType{"", domain.StageTransition, domain.StoryBlocked} {
			for _, limit := range []int{1, 3, 100} {
				for position := range int64(13) {
					for _, q := range []domain.EventQuery{
						{After: position, Limit: limit, Project: project, Type: kind},
						{Before: position, Backward: true, Limit: limit, Project: project, Type: kind},
					} {
						if got, want := eventIDs(t, inMemory, q), eventIDs(t, inStore, q); !slices.Equal(got, want) {
							t.Errorf("%+v: memory %v, store %v", q, got, want)
						}
						got, _ := inMemory.Events.Page(t.Context(), q)
						if want, err := inStore.Events.Page(t.Context(), q); err != nil || got.More != want.More {
							t.Errorf("%+v: more in memory %t, in store %t, %v", q, got.More, want.More, err)
						}
					}
				}
			}
		}
	}
	if n := db.queries.Load(); n != 0 {
		t.Errorf("%d queries for events that are in memory", n)
	}
}

func TestMemoryIsBoundedByCountAndBytes(t *testing.T) {
	dir := storetest.Dir(t)
	svc := streamOver(t, openStore(t, dir))
	for i := range 5 {
		recordFeed(t, svc, moved("alpha", i*500+1, i*500+500))
	}
	big, _ := domain.ParseRecord(json.RawMessage(`{"type":"x","timestamp_ms":1,"text":"` + strings.Repeat("x", 3<<20) + `"}`))
	also, _ := domain.ParseRecord(json.RawMessage(`{"type":"y","timestamp_ms":1,"text":"` + strings.Repeat("y", 3<<20) + `"}`))
	recordFeed(t, svc, domain.FeedRead{Cursor: domain.FeedCursor{Project: "big"}, Records: []domain.Record{big, also}}, moved("beta", 1, 3))
	events, bytes := service.TailSize(svc)
	if events > 2048 || bytes > 4<<20 {
		t.Errorf("%d events and %d bytes in memory", events, bytes)
	}
	for after := int64(0); after < 2505; after += 250 {
		ids := eventIDs(t, svc, domain.EventQuery{After: after})
		want := min(1000, 2505-after)
		if last := ids[len(ids)-1]; int64(len(ids)) < want { // the store's page ends after the huge ones
			ids = append(ids, eventIDs(t, svc, domain.EventQuery{After: last})...)
		}
		if int64(len(ids)) != want || ids[0] != after+1 {
			t.Errorf("after %d: %d events, want %d", after, len(ids), want)
		}
	}
}

func TestWaitingReaderIsWokenByWhatItAskedFor(t *testing.T) {
	db := openStore(t, storetest.Dir(t))
	svc := streamOver(t, db)
	type answer struct {
		events []domain.Event
		err    error
	}
	answers := make(chan answer)
	go func() {
		page, err := svc.Events.Wait(context.Background(), domain.EventQuery{Limit: 10, Project: "beta"}, time.Minute)
		answers <- answer{page.Events, err}
	}()
	recordFeed(t, svc, moved("alpha", 1, 3))
	select {
	case a := <-answers:
		t.Fatalf("answered %v to another project's events", a)
	default:
	}
	recordFeed(t, svc, moved("beta", 1, 2))
	if a := <-answers; a.err != nil || len(a.events) != 2 || a.events[0].ID != 4 {
		t.Errorf("got %v", a)
	}
	if n := db.queries.Load(); n != 0 {
		t.Errorf("%d queries, want none", n)
	}
}

func TestWaitingReaderGetsNothingWhenTimeOrContextEnds(t *testing.T) {
	db := openStore(t, storetest.Dir(t))
	svc := streamOver(t, db)
	if page, err := svc.Events.Wait(context.Background(), domain.EventQuery{Limit: 10}, time.Millisecond); page.Events != nil || err != nil {
		t.Errorf("time over: %v, %v", page.Events, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if page, err := svc.Events.Wait(ctx, domain.EventQuery{Limit: 10}, time.Minute); page.Events != nil || err != nil {
		t.Errorf("ended: %v, %v", page.Events, err)
	}
	recordFeed(t, svc, moved("p", 1, 1))
	svc = streamOver(t, db) // it has to ask the store, which an ended context keeps it from
	if page, err := svc.Events.Wait(ctx, domain.EventQuery{Limit: 10}, time.Minute); page.Events != nil || err != nil {
		t.Errorf("ended before: %v, %v", page.Events, err)
	}
}

// TestReadersSeeEveryEventOnceAndInOrder follows the stream while many feeds are recorded concurrently.
func TestReadersSeeEveryEventOnceAndInOrder(t *testing.T) {
	svc := streamOver(t, openStore(t, storetest.Dir(t)))
	const projects, each = 20, 60
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	var recorders, readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			var after int64
			next := map[string]int64{}
			for after < projects*each {
				page, err := svc.Events.Wait(ctx, domain.EventQuery{After: after, Limit: 7}, time.Minute)
				if err != nil || len(page.Events) == 0 {
					t.Errorf("after %d: %v, %v", after, page.Events, err)
					return
				}
				for _, e := range page.Events {
					if e.ID != after+1 || e.At.UnixMilli() != next[e.Project]+1 {
						t.Errorf("event %d follows %d, story %d of %s follows %d", e.ID, after, e.At.UnixMilli(), e.Project, next[e.Project])
					}
					after, next[e.Project] = e.ID, e.At.UnixMilli()
				}
			}
		})
	}
	for p := range projects {
		recorders.Go(func() {
			for i := 1; i <= each; i++ {
				if err := svc.Events.Record(ctx, moved(fmt.Sprint("p", p), max(1, i-1), i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	recorders.Wait()
	readers.Wait()
}

// BenchmarkRecordFeed records one event of each of many feeds concurrently, as after a burst in all projects.
func BenchmarkRecordFeed(b *testing.B) {
	for _, feeds := range []int{1, 100, 1000} {
		b.Run(fmt.Sprintf("feeds=%d", feeds), func(b *testing.B) {
			db := openStore(b, storetest.Dir(b))
			svc := streamOver(b, db)
			n := 0
			for b.Loop() {
				n++
				var recorders sync.WaitGroup
				for i := range feeds {
					recorders.Go(func() {
						if err := svc.Events.Record(context.Background(), moved(fmt.Sprint("p", i), n, n)); err != nil {
							b.Error(err)
						}
					})
				}
				recorders.Wait()
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(n*feeds), "µs/event")
			b.ReportMetric(float64(db.appends.Load())/float64(n), "commits/op")
		})
	}
}
