package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/pgtest"
	"switchyard/internal/store/postgres"
	"switchyard/internal/store/storetest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Run(m.Run)) }

func open(t testing.TB, url string) *postgres.DB {
	t.Helper()
	db, err := postgres.Open(t.Context(), url)
	return storetest.Opened(t, db, err)
}

// read returns a read of n records of a project, numbered from first.
func read(project string, token int64, first, n int) domain.FeedRead {
	r := domain.FeedRead{
		Cursor: domain.FeedCursor{Project: project, URL: "http://" + project, Since: int64(first + n)}, ReceivedAt: time.UnixMilli(1_000_000), Token: token,
	}
	for i := first; i < first+n; i++ {
		record, err := domain.ParseRecord(fmt.Appendf(nil, `{"type":"stage_transition","story_id":"%d_story","story_name":"Überblick %d\u0000","from_stage":"1_backlog","to_stage":"2_current","timestamp_ms":%d}`, i%10, i%10, i))
		if err != nil {
			panic(err)
		}
		r.Records = append(r.Records, record)
	}
	return r
}

func ids(events []domain.Event) (ids []int64) {
	for _, e := range events {
		ids = append(ids, e.ID)
	}
	return ids
}

// TestOnlyTheLeaderWrites: a gateway that was frozen while another took over stores nothing.
func TestOnlyTheLeaderWrites(t *testing.T) {
	t.Parallel()
	db := open(t, pgtest.Database(t))
	frozen := storetest.Lead(t, db.Lease(), "frozen")
	live := storetest.Lead(t, db.Lease(), "live")
	for _, c := range []struct {
		token   int64
		want    []int64
		refused []int
	}{
		{frozen, nil, []int{0}},
		{live, []int64{1, 2}, nil},
		{live + 1, nil, []int{0}},
	} {
		appended, err := db.AppendEvents(t.Context(), []domain.FeedRead{read("alpha", c.token, 1+int(c.token)*10, 2)})
		if err != nil || !slices.Equal(ids(appended.Added), c.want) || !slices.Equal(appended.Refused, c.refused) {
			t.Errorf("under token %d: %+v, %v", c.token, appended, err)
		}
	}
	if cursors, err := db.FeedCursors(t.Context(), "alpha"); err != nil || len(cursors) != 1 || cursors[0].Since != live*10+3 {
		t.Errorf("positions are %+v, %v", cursors, err)
	}
	for token, want := range map[int64]error{frozen: domain.ErrNotLeader, live: nil} {
		ctx := t.Context()
		for name, err := range map[string]error{
			"a value": db.SetLeaderState(ctx, token, "key", "value"), "visits": observe(ctx, db, token),
			"a removal": db.RemoveEvents(ctx, token, []int64{1}), "the bot's state": db.SetBotRun(ctx, token, domain.BotRun{}),
		} {
			if !errors.Is(err, want) {
				t.Errorf("%s under token %d: %v, want %v", name, token, err, want)
			}
		}
	}
}

func observe(ctx context.Context, db *postgres.DB, token int64) error {
	seen := []domain.Sighting{{StoryID: "1", Stage: "2_current"}}
	_, _, err := db.ObserveVisits(ctx, token, domain.Observation{Project: "alpha", Seen: seen, Asked: time.Now(), Now: time.Now()})
	return err
}

// TestAReaderMissesNothing: during concurrent appends, a reader that always continues after the last id sees each
// event, in order.
func TestAReaderMissesNothing(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	const writers, appends = 4, 50
	var writing sync.WaitGroup
	for w := range writers {
		db := open(t, url)
		writing.Go(func() {
			for i := range appends {
				if _, err := db.AppendEvents(t.Context(), []domain.FeedRead{read(fmt.Sprint("project ", w), 0, i*5, 5)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { writing.Wait(); close(done) }()
	db := open(t, url)
	var seen []int64
	for over := false; ; {
		var after int64
		if len(seen) > 0 {
			after = seen[len(seen)-1]
		}
		page, err := db.Events(t.Context(), domain.EventQuery{After: after, Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		seen = append(seen, ids(page.Events)...)
		if over && len(page.Events) == 0 {
			break
		}
		select {
		case <-done:
			over = true
		default:
		}
	}
	if len(seen) != writers*appends*5 || !slices.IsSorted(seen) || seen[len(seen)-1] != int64(len(seen)) {
		t.Errorf("%d events, the last %d", len(seen), seen[len(seen)-1])
	}
}

// TestARestoredDatabaseHasAnotherIdentity: a copy is one.
func TestARestoredDatabaseHasAnotherIdentity(t *testing.T) {
	t.Parallel()
	address := pgtest.Database(t)
	identity := func(address string) string {
		t.Helper()
		db, err := postgres.Open(t.Context(), address)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		id, err := db.Identity(t.Context())
		if err != nil || id == "" {
			t.Fatalf("identity %q, %v", id, err)
		}
		return id
	}
	first := identity(address)
	if again := identity(address); again != first {
		t.Errorf("another gateway sees %q, not %q", again, first)
	}
	source, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	name := strings.TrimPrefix(source.Path, "/")
	execute(t, pgtest.Database(t), "CREATE DATABASE "+name+"_copy TEMPLATE "+name)
	source.Path += "_copy"
	id := identity(source.String())
	if id == first || identity(source.String()) != id {
		t.Errorf("the copy has the identity %q, the original %q", id, first)
	}
}
