package postgres_test

import (
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"switchyard/internal/cluster"
	"switchyard/internal/domain"
	"switchyard/internal/pgtest"
	"switchyard/internal/store/postgres"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Run(m.Run)) }

func open(t testing.TB, url string) *pgxpool.Pool {
	t.Helper()
	pool, err := postgres.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// read is a read of n records of a project, those from number first on.
func read(project string, epoch int64, first, n int) postgres.Read {
	r := postgres.Read{Epoch: epoch, FeedRead: domain.FeedRead{
		Cursor: domain.FeedCursor{Project: project, URL: "http://" + project, Since: int64(first + n)}, ReceivedAt: time.UnixMilli(1_000_000),
	}}
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

func TestWhatIsStoredAlreadyIsDropped(t *testing.T) {
	t.Parallel()
	events := postgres.NewEvents(open(t, pgtest.Database(t)))
	twice := read("alpha", 0, 1, 3)
	twice.Records = append(twice.Records, twice.Records[0])
	for i, want := range [][]int64{{1, 2, 3, 4, 5}, nil, {6}} {
		reads := []postgres.Read{twice, read("beta", 0, 1, 2)}
		if i == 2 {
			reads = append(reads, read("beta", 0, 3, 1))
		}
		added, last, refused, err := events.Append(t.Context(), "", reads)
		if err != nil || len(refused) > 0 || !slices.Equal(ids(added), want) || last != []int64{0, 5, 5}[i] {
			t.Fatalf("append %d: events %v after %d, refused %v, %v", i+1, ids(added), last, refused, err)
		}
	}
	if last, err := events.LastID(t.Context()); err != nil || last != 6 {
		t.Errorf("the last id is %d, %v", last, err)
	}
	page, err := events.Page(t.Context(), domain.EventQuery{Limit: 100})
	if err != nil || page.More || !slices.Equal(ids(page.Events), []int64{1, 2, 3, 4, 5, 6}) {
		t.Errorf("stored are %v, %v", ids(page.Events), err)
	}
	if got := page.Events[5]; got.Project != "beta" || got.At.UnixMilli() != 3 || string(got.JSON) != string(read("", 0, 3, 1).Records[0].JSON) {
		t.Errorf("the last one is %+v", got)
	}
	cursors, err := events.Cursors(t.Context(), "beta")
	if err != nil || len(cursors) != 1 || cursors[0].Since != 4 {
		t.Errorf("the position is %+v, %v", cursors, err)
	}
}

func TestPagesAndFilters(t *testing.T) {
	t.Parallel()
	events := postgres.NewEvents(open(t, pgtest.Database(t)))
	if _, _, _, err := events.Append(t.Context(), "", []postgres.Read{read("alpha", 0, 1, 20), read("100%_beta", 0, 1, 20)}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		query domain.EventQuery
		want  []int64
		more  bool
	}{
		{domain.EventQuery{Limit: 2}, []int64{1, 2}, true},
		{domain.EventQuery{After: 38, Limit: 2}, []int64{39, 40}, false},
		{domain.EventQuery{Backward: true, Limit: 2}, []int64{40, 39}, true},
		{domain.EventQuery{Backward: true, Before: 2, Limit: 2}, []int64{1}, false},
		{domain.EventQuery{Project: "alpha", After: 19, Limit: 5}, []int64{20}, false},
		{domain.EventQuery{Type: "stage_transition", Project: "alpha", Limit: 1}, []int64{1}, true},
		{domain.EventQuery{Type: "merge_failure", Limit: 1}, nil, false},
		{domain.EventQuery{Text: "uberblick 7", Limit: 9}, []int64{7, 17, 27, 37}, false},
		{domain.EventQuery{Text: "%_B", Limit: 1}, []int64{21}, true},
		{domain.EventQuery{Text: "nothing like it", Limit: 1}, nil, false},
		{domain.EventQuery{Limit: 9, Bytes: 1}, []int64{1}, true},
	} {
		page, err := events.Page(t.Context(), c.query)
		if err != nil || !slices.Equal(ids(page.Events), c.want) || page.More != c.more {
			t.Errorf("%+v: %v, more %v, %v", c.query, ids(page.Events), page.More, err)
		}
	}
	story, err := events.OfStory(t.Context(), "alpha", "3_story", 10)
	if err != nil || !slices.Equal(ids(story), []int64{13, 3}) {
		t.Errorf("the story's events are %v, %v", ids(story), err)
	}
}

// TestOnlyTheGatewayWhoseDutyItIsAppends: a gateway that was frozen while another took over stores nothing of what it read.
func TestOnlyTheGatewayWhoseDutyItIsAppends(t *testing.T) {
	t.Parallel()
	pool := open(t, pgtest.Database(t))
	events, duties := postgres.NewEvents(pool), postgres.NewDuties(pool, postgres.NewNotices(pool))
	claim := func(id string, lease time.Duration) int64 {
		if err := duties.Join(t.Context(), cluster.Gateway{ID: id, Name: id}, lease); err != nil {
			t.Fatal(err)
		}
		granted, err := duties.Claim(t.Context(), id, []string{postgres.FeedDuty("alpha")})
		if err != nil || len(granted) != 1 {
			t.Fatalf("granted to %s: %v, %v", id, granted, err)
		}
		return granted[postgres.FeedDuty("alpha")]
	}
	frozen := claim("frozen", time.Nanosecond)
	live := claim("live", time.Minute)
	for _, c := range []struct {
		gateway string
		epoch   int64
		want    []int64
		refused []int
	}{
		{"frozen", frozen, nil, []int{0}},
		{"live", frozen, nil, []int{0}},
		{"live", live, []int64{1, 2}, nil},
		{"frozen", live, nil, []int{0}},
	} {
		added, _, refused, err := events.Append(t.Context(), c.gateway, []postgres.Read{read("alpha", c.epoch, 1+int(c.epoch)*10, 2)})
		if err != nil || !slices.Equal(ids(added), c.want) || !slices.Equal(refused, c.refused) {
			t.Errorf("%s under epoch %d: %v, refused %v, %v", c.gateway, c.epoch, ids(added), refused, err)
		}
	}
	if cursors, err := events.Cursors(t.Context(), "alpha"); err != nil || len(cursors) != 1 || cursors[0].Since != int64(live)*10+3 {
		t.Errorf("positions are %+v, %v", cursors, err)
	}
}

// TestAReaderMissesNothing: of many appends at once, a reader that continues after the last id it saw sees each event, in
// order.
func TestAReaderMissesNothing(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	const writers, appends = 4, 50
	var writing sync.WaitGroup
	for w := range writers {
		events := postgres.NewEvents(open(t, url))
		writing.Go(func() {
			for i := range appends {
				if _, _, _, err := events.Append(t.Context(), "", []postgres.Read{read(fmt.Sprint("project ", w), 0, i*5, 5)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { writing.Wait(); close(done) }()
	events := postgres.NewEvents(open(t, url))
	var seen []int64
	for over := false; ; {
		var after int64
		if len(seen) > 0 {
			after = seen[len(seen)-1]
		}
		page, err := events.Page(t.Context(), domain.EventQuery{After: after, Limit: 100})
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
