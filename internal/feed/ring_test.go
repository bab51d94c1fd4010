package feed_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/feed"
)

// clock is a clock that tests set.
type clock struct{ now time.Time }

func (c *clock) read() time.Time { return c.now }

func newRing() (*feed.Ring, *clock) {
	c := &clock{now: time.UnixMilli(1_700_000_000_000)}
	return feed.New(c.read), c
}

func move(id int) feed.Notification {
	return feed.Notification{Type: domain.StageTransition, StoryID: fmt.Sprintf("%d_story", id), Name: fmt.Sprintf("Story %d", id), ToStage: "3_qa", FromStage: "2_current"}
}

func text(s *feed.Snapshot, since uint64) string {
	head, tail := s.After(since)
	return string(head) + string(tail)
}

type event struct {
	Type        string `json:"type"`
	StoryID     string `json:"story_id"`
	TimestampMS uint64 `json:"timestamp_ms"`
}

func events(t testing.TB, s *feed.Snapshot, since uint64) []event {
	t.Helper()
	var list []event
	if err := json.Unmarshal([]byte(text(s, since)), &list); err != nil {
		t.Fatalf("since %d: %v in %q", since, err, text(s, since))
	}
	return list
}

func TestEachKindHasItsForm(t *testing.T) {
	for _, test := range []struct {
		name         string
		notification feed.Notification
		want         string
	}{
		{
			"move",
			feed.Notification{Type: domain.StageTransition, StoryID: "7_login", Name: "Log <in> & out", ToStage: "3_qa", FromStage: "2_current"},
			`[{"type":"stage_transition","story_id":"7_login","story_name":"Log <in> & out","from_stage":"2_current","to_stage":"3_qa","timestamp_ms":1700000000000}]`,
		},
		{
			"blocked",
			feed.Notification{Type: domain.StoryBlocked, StoryID: "7_login", Name: "Login", Reason: "waiting: \"API key\"\n"},
			`[{"type":"story_blocked","story_id":"7_login","story_name":"Login","reason":"waiting: \"API key\"\n","timestamp_ms":1700000000000}]`,
		},
		{
			"merge failure",
			feed.Notification{Type: domain.MergeFailure, StoryID: "7_login", Name: "Login", Reason: "conflict"},
			`[{"type":"merge_failure","story_id":"7_login","story_name":"Login","reason":"conflict","timestamp_ms":1700000000000}]`,
		},
		{"new item", feed.Notification{Type: domain.StageTransition, StoryID: "7_login", Name: "Login", ToStage: "2_current"}, `[]`},
	} {
		t.Run(test.name, func(t *testing.T) {
			ring, _ := newRing()
			ring.Record(test.notification)
			if got := text(ring.Snapshot(), 0); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

func TestTheOldestAreDroppedFirstAndStampsIncreaseWithinOneMillisecond(t *testing.T) {
	ring, _ := newRing()
	for i := range 1000 {
		ring.Record(move(i))
	}
	snapshot := ring.Snapshot()
	list := events(t, snapshot, 0)
	if len(list) != feed.Capacity || snapshot.SequenceText != "1000" {
		t.Fatalf("%d events, sequence %s", len(list), snapshot.SequenceText)
	}
	for i, e := range list {
		if want := uint64(1_700_000_000_500 + i); e.TimestampMS != want || e.StoryID != fmt.Sprintf("%d_story", 500+i) {
			t.Fatalf("event %d: %+v, want stamp %d", i, e, want)
		}
	}
}

func TestABatchBeyondTheCapacityKeepsItsEnd(t *testing.T) {
	ring, _ := newRing()
	var batch []feed.Notification
	for i := range 1200 {
		batch = append(batch, move(i))
	}
	ring.Record(batch...)
	list := events(t, ring.Snapshot(), 0)
	if len(list) != feed.Capacity || list[0].StoryID != "700_story" || list[499].StoryID != "1199_story" {
		t.Fatalf("%d events from %s to %s", len(list), list[0].StoryID, list[len(list)-1].StoryID)
	}
}

func TestStampsNeverRunBack(t *testing.T) {
	ring, clock := newRing()
	ring.Record(move(1))
	clock.now = clock.now.Add(-time.Hour)
	ring.Record(move(2))
	clock.now = clock.now.Add(time.Hour + time.Second)
	ring.Record(move(3))
	var got []uint64
	for _, e := range events(t, ring.Snapshot(), 0) {
		got = append(got, e.TimestampMS)
	}
	if fmt.Sprint(got) != "[1700000000000 1700000000001 1700000001000]" {
		t.Errorf("stamps %v", got)
	}
}

func TestAClockBefore1970StillGivesStampsAboveZero(t *testing.T) {
	ring, clock := newRing()
	clock.now = time.UnixMilli(-5)
	ring.Record(move(1))
	if list := events(t, ring.Snapshot(), 0); len(list) != 1 || list[0].TimestampMS != 1 {
		t.Errorf("%+v", list)
	}
}

func TestSinceIsStrictlyGreater(t *testing.T) {
	ring, _ := newRing()
	for i := range 600 {
		ring.Record(move(i))
	}
	snapshot := ring.Snapshot()
	first := uint64(1_700_000_000_100)
	for _, test := range []struct {
		since uint64
		want  int
	}{
		{0, 500},
		{first - 1, 500},
		{first, 499},
		{first + 248, 251},
		{first + 498, 1},
		{first + 499, 0},
		{math.MaxInt64, 0},
		{math.MaxInt64 + 1, 0},
		{math.MaxUint64, 0},
	} {
		list := events(t, snapshot, test.since)
		if len(list) != test.want || snapshot.Has(test.since) != (test.want > 0) {
			t.Errorf("since %d: %d events, has %t, want %d", test.since, len(list), snapshot.Has(test.since), test.want)
		}
		if len(list) > 0 && list[0].TimestampMS <= test.since {
			t.Errorf("since %d: first is stamped %d", test.since, list[0].TimestampMS)
		}
	}
}

func TestASnapshotStaysAsItWas(t *testing.T) {
	ring, _ := newRing()
	empty := ring.Snapshot()
	ring.Record(move(1))
	one := ring.Snapshot()
	for i := range 2000 {
		ring.Record(move(i))
	}
	if text(empty, 0) != "[]" || !strings.Contains(text(one, 0), `"1_story"`) || len(events(t, one, 0)) != 1 {
		t.Errorf("empty: %s, one: %s", text(empty, 0), text(one, 0))
	}
}

func TestTwoRingsAreTwoInstances(t *testing.T) {
	a, _ := newRing()
	b, _ := newRing()
	if a.Instance() == "" || a.Instance() == b.Instance() {
		t.Errorf("instances %q and %q", a.Instance(), b.Instance())
	}
}

// A reader that always asks for events after its last one neither misses nor repeats any, even while a writer bursts.
func TestAFollowingReaderSeesEachEventOnce(t *testing.T) {
	ring := feed.New(time.Now)
	const total = 3000
	written := make(chan int, 100) // keeps the writer less than a ring ahead
	go func() {
		for i := range total {
			written <- i
			ring.Record(move(i))
		}
	}()
	var since uint64
	for next := 0; next < total; {
		snapshot := ring.Snapshot()
		if !snapshot.Has(since) {
			<-snapshot.Replaced()
			continue
		}
		for _, e := range events(t, snapshot, since) {
			if want := fmt.Sprintf("%d_story", next); e.StoryID != want {
				t.Fatalf("got %s, want %s", e.StoryID, want)
			}
			since = e.TimestampMS
			next++
			<-written
		}
	}
}

func TestAThousandWaitersWakeOnceForABatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ring := feed.New(time.Now)
		var waiters sync.WaitGroup
		for range 1000 {
			waiters.Go(func() {
				snapshot := ring.Snapshot()
				<-snapshot.Replaced()
				if len(events(t, ring.Snapshot(), 0)) != 3 {
					t.Error("woken by a part of the batch")
				}
			})
		}
		synctest.Wait()
		ring.Record(feed.Notification{Type: domain.StageTransition, StoryID: "new", ToStage: "1_backlog"}) // records no event, wakes nobody
		synctest.Wait()
		ring.Record(move(1), move(2), move(3))
		waiters.Wait()
	})
}

// FuzzRecord checks that the feed is always a valid JSON array, whatever is recorded.
func FuzzRecord(f *testing.F) {
	f.Add("7_login", "Login", "2_current", "3_qa")
	f.Add("a\xff,]", "\"},{", "\u2028", "\x00")
	f.Fuzz(func(t *testing.T, id, name, from, to string) {
		ring, _ := newRing()
		ring.Record(
			feed.Notification{Type: domain.StageTransition, StoryID: id, Name: name, FromStage: from, ToStage: to},
			feed.Notification{Type: domain.StoryBlocked, StoryID: id, Name: name, Reason: from},
			feed.Notification{Type: domain.MergeFailure, StoryID: id, Name: name, Reason: to},
		)
		want := 3
		if from == "" {
			want = 2
		}
		for since := range uint64(4) {
			list := events(t, ring.Snapshot(), 1_700_000_000_000+since-1)
			if len(list) != max(0, want-int(since)) {
				t.Fatalf("since +%d: %+v", since, list)
			}
		}
	})
}
