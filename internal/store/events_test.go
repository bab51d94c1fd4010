package store_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"switchyard/internal/domain"
	"switchyard/internal/store/storetest"
)

func TestReadsOfManyFeedsGetConsecutiveIDsInTheirOrder(t *testing.T) {
	onEachEngine(t, func(t *testing.T, db database) {
		added := appendEvents(t, db, feedRead("alpha", move(t, 1), move(t, 2)), feedRead("beta"), feedRead("gamma", move(t, 1)))
		if got := ids(added); !slices.Equal(got, []int64{1, 2, 3}) || added[2].Project != "gamma" {
			t.Errorf("added %v", added)
		}
		appended, err := db.AppendEvents(t.Context(), []domain.FeedRead{feedRead("beta", move(t, 9))})
		added = appended.Added
		if err != nil || appended.Last != 3 || !slices.Equal(ids(added), []int64{4}) {
			t.Errorf("added %v after %d: %v", added, appended.Last, err)
		}
		if id, err := db.LastEventID(t.Context()); id != 4 || err != nil {
			t.Errorf("last id %d, %v", id, err)
		}
		page, err := db.Events(t.Context(), domain.EventQuery{After: 2, Limit: 10})
		stored := page.Events
		if err != nil || !slices.Equal(ids(stored), []int64{3, 4}) {
			t.Fatalf("stored %v, %v", stored, err)
		}
		if got, want := string(stored[1].AppendJSON(nil)), string(added[0].AppendJSON(nil)); got != want {
			t.Errorf("stored event is\n%s, appended was\n%s", got, want)
		}
	})
}

func TestContentIsStoredOncePerProjectAndTakesNoIDTheSecondTime(t *testing.T) {
	onEachEngine(t, func(t *testing.T, db database) {
		appendEvents(t, db, feedRead("alpha", move(t, 1), move(t, 1)), feedRead("beta", move(t, 1)))
		reordered := eventRecord(t, `{"timestamp_ms":1001,"to_stage":"3_qa","from_stage":"2_current","story_name":"Story 1","story_id":"1_story","kind":"StageTransition","id":7}`)
		added := appendEvents(t, db, feedRead("alpha", reordered, move(t, 2), move(t, 1)))
		if len(added) != 1 || added[0].ID != 3 || added[0].At.UnixMilli() != 1002 {
			t.Errorf("added %v, want only story 2 as event 3", added)
		}
	})
}

func TestPositionAndEventsAreStoredTogetherOrNotAtAll(t *testing.T) {
	onEachEngine(t, func(t *testing.T, db database) {
		appendEvents(t, db, feedRead("alpha", move(t, 1)))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := db.AppendEvents(ctx, []domain.FeedRead{feedRead("alpha", move(t, 2))}); err == nil {
			t.Fatal("no error")
		}
		cursors, err := db.FeedCursors(t.Context(), "alpha")
		want := domain.FeedCursor{Project: "alpha", URL: "http://alpha", Since: 1001, Instance: "i", Sequence: 1}
		if err != nil || !slices.Equal(cursors, []domain.FeedCursor{want}) {
			t.Errorf("positions %+v, %v, want %+v", cursors, err, want)
		}
		second := feedRead("alpha", move(t, 2))
		second.Cursor.URL = "http://elsewhere"
		appendEvents(t, db, second, feedRead("alpha", move(t, 3)))
		cursors, err = db.FeedCursors(t.Context(), "alpha")
		if err != nil || len(cursors) != 2 {
			t.Errorf("positions %+v, %v, want one for each URL", cursors, err)
		}
		if cursors, err = db.FeedCursors(t.Context(), "alph"); err != nil || len(cursors) != 0 {
			t.Errorf("positions of an unknown project: %+v, %v", cursors, err)
		}
	})
}

func TestQueriesSelectByPositionProjectTypeAndText(t *testing.T) {
	onEachEngine(t, func(t *testing.T, db database) {
		blocked := eventRecord(t, `{"type":"story_blocked","story_id":"12_pay","story_name":"Zahlung ÜBER \"alles\"","reason":"100%_sure","timestamp_ms":1}`)
		nested := eventRecord(t, `{"type":"deploy","where":{"hosts":["Web-1","b\\c"]},"timestamp_ms":2}`)
		appendEvents(t, db,
			feedRead("alpha", move(t, 1), move(t, 2), blocked), // 1 2 3
			feedRead("Beta", move(t, 3), nested),               // 4 5
		)
		for _, c := range []struct {
			name string
			q    domain.EventQuery
			want []int64
		}{
			{"all", domain.EventQuery{}, []int64{1, 2, 3, 4, 5}},
			{"after", domain.EventQuery{After: 3}, []int64{4, 5}},
			{"after the end", domain.EventQuery{After: 99}, nil},
			{"limit", domain.EventQuery{After: 1, Limit: 2}, []int64{2, 3}},
			{"newest page", domain.EventQuery{Backward: true, Limit: 2}, []int64{5, 4}},
			{"older page", domain.EventQuery{Backward: true, Before: 4, Limit: 2}, []int64{3, 2}},
			{"nothing older", domain.EventQuery{Backward: true, Before: 1}, nil},
			{"project", domain.EventQuery{Project: "Beta"}, []int64{4, 5}},
			{"project is exact", domain.EventQuery{Project: "beta"}, nil},
			{"type", domain.EventQuery{Type: domain.StageTransition}, []int64{1, 2, 4}},
			{"project, type, backward", domain.EventQuery{Project: "alpha", Type: domain.StageTransition, Backward: true}, []int64{2, 1}},
			{"text in a value", domain.EventQuery{Text: "story 2"}, []int64{2}},
			{"text in the project", domain.EventQuery{Text: "BETA"}, []int64{4, 5}},
			{"text in a type", domain.EventQuery{Text: "blocked"}, []int64{3}},
			{"text beyond ASCII and in quotes", domain.EventQuery{Text: `über "`}, []int64{3}},
			{"text of LIKE's own signs", domain.EventQuery{Text: "0%_s"}, []int64{3}},
			{"text deep inside", domain.EventQuery{Text: "web-1"}, []int64{5}},
			{"backslash", domain.EventQuery{Text: `b\c`}, []int64{5}},
			{"keys and numbers are no text", domain.EventQuery{Text: "timestamp"}, nil},
			{"text after a position", domain.EventQuery{Text: "story", After: 1, Type: domain.StageTransition}, []int64{2, 4}},
		} {
			t.Run(c.name, func(t *testing.T) {
				if c.q.Limit == 0 {
					c.q.Limit = 100
				}
				page, err := db.Events(t.Context(), c.q)
				if err != nil || !slices.Equal(ids(page.Events), c.want) {
					t.Errorf("got %v, %v, want %v", ids(page.Events), err, c.want)
				}
				all := c.q
				all.Limit = 100
				if rest, err := db.Events(t.Context(), all); err != nil || page.More != (len(rest.Events) > len(page.Events)) {
					t.Errorf("more: %t, with %d of %d events, %v", page.More, len(page.Events), len(rest.Events), err)
				}
			})
		}
	})
}

func TestRecordsComeBackAsTheyCame(t *testing.T) {
	onEachEngine(t, func(t *testing.T, db database) {
		var records []domain.Record
		for _, text := range storetest.Strange {
			records = append(records, eventRecord(t, text))
		}
		for _, want := range []int{len(records), 0} { // the second time they are known
			if added := appendEvents(t, db, feedRead("alpha", records...)); len(added) != want {
				t.Errorf("%d were added, want %d", len(added), want)
			}
		}
		page, err := db.Events(t.Context(), domain.EventQuery{Limit: 100})
		if err != nil || len(page.Events) != len(records) {
			t.Fatalf("%d events, %v", len(page.Events), err)
		}
		for i, e := range page.Events {
			if string(e.JSON) != string(records[i].JSON) || e.Type != records[i].Type || !e.At.Equal(records[i].At) {
				t.Errorf("%.300q\ncame back as\n%.300q", records[i].JSON, e.JSON)
			}
		}
		history, err := db.StoryEvents(t.Context(), "alpha", "1_story", 10)
		if err != nil || !slices.Equal(ids(history), []int64{2}) {
			t.Errorf("events of a story: %v, %v", ids(history), err)
		}
		for _, text := range []string{"\x00", "\xff", "a\x00", "no such text \x00"} { // nothing is an error
			if _, err := db.Events(t.Context(), domain.EventQuery{Text: text, Project: text, Type: domain.EventType(text), Limit: 10}); err != nil {
				t.Errorf("%q: %v", text, err)
			}
			if _, err := db.Events(t.Context(), domain.EventQuery{Text: text, Limit: 10}); err != nil {
				t.Errorf("%q: %v", text, err)
			}
			if _, err := db.StoryName(t.Context(), text, text); domain.CodeOf(err) != domain.NotFound {
				t.Errorf("%q: %v", text, err)
			}
		}
	})
}

func TestPagesOfHugeEventsAreBoundedInBytes(t *testing.T) {
	onEachEngine(t, func(t *testing.T, db database) {
		for n := range 4 {
			appendEvents(t, db, feedRead("alpha", eventRecord(t, fmt.Sprintf(`{"timestamp_ms":%d,"huge":"%s"}`, n, strings.Repeat("x", 2<<20)))))
		}
		for _, c := range []struct {
			q    domain.EventQuery
			want []int64
			more bool
		}{
			{domain.EventQuery{Limit: 1000}, []int64{1, 2}, true},
			{domain.EventQuery{Limit: 1000, After: 3}, []int64{4}, false},
			{domain.EventQuery{Limit: 1000, Backward: true}, []int64{4, 3}, true},
			{domain.EventQuery{Limit: 1000, Bytes: 1 << 20}, []int64{1}, true},
		} {
			if page, err := db.Events(t.Context(), c.q); err != nil || !slices.Equal(ids(page.Events), c.want) || page.More != c.more {
				t.Errorf("%+v: %v, more: %t, %v, want %v", c.q, ids(page.Events), page.More, err, c.want)
			}
		}
	})
}

func TestEventsSurviveReopening(t *testing.T) {
	for _, engine := range engines {
		t.Run(engine.name, func(t *testing.T) {
			reopen := engine.open(t)
			for round := range 3 {
				db, err := reopen()
				if err != nil {
					t.Fatal(err)
				}
				appendEvents(t, db, feedRead("alpha", move(t, 0), move(t, round)))
				if id, err := db.LastEventID(t.Context()); err != nil || id != int64(round+1) {
					t.Errorf("round %d: last id %d, %v", round, id, err)
				}
				if err := db.Close(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkAppend shows how much committing many feeds' reads together saves: one synced write for all of them.
func BenchmarkAppend(b *testing.B) {
	for _, engine := range engines {
		for _, feeds := range []int{1, 10, 100, 1000} {
			b.Run(fmt.Sprintf("%s/feeds=%d", engine.name, feeds), func(b *testing.B) {
				db := open(b, engine.open(b))
				n := 0
				for b.Loop() {
					reads := make([]domain.FeedRead, feeds)
					for i := range reads {
						n++
						reads[i] = feedRead(strings.Repeat("p", 1+i%20), move(b, n))
					}
					appendEvents(b, db, reads...)
				}
				b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(n), "µs/event")
			})
		}
	}
}
