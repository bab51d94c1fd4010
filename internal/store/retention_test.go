package store_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"switchyard/internal/domain"
)

func TestOldEventsAreRemovedButTheLastOfEachProject(t *testing.T) {
	onEachEngine(t, func(t *testing.T, db database) {
		for n := range int64(10) {
			appendEvents(t, db, received(n, feedRead("alpha", move(t, int(n)))), received(n, feedRead("beta", move(t, int(n)))))
		}
		if removed := remove(t, db, expired("alpha", 4, 3)); !slices.Equal(removed, []int64{1, 3, 5, 7}) {
			t.Errorf("removed %v", removed)
		}
		if removed := remove(t, db, expired("alpha", 100, 3)); !slices.Equal(removed, []int64{9, 11, 13}) {
			t.Errorf("then removed %v", removed)
		}
		needed := expired("beta", 100, 1)
		needed.Needed = 6
		if removed := remove(t, db, needed); !slices.Equal(removed, []int64{2, 4}) {
			t.Errorf("removed %v, though from 6 on all are needed", removed)
		}
		if removed := remove(t, db, expired("gamma", 100, 1)); removed != nil {
			t.Errorf("removed %v of a project that there is not", removed)
		}
		// A position whose event has been removed continues with the oldest event.
		page, err := db.Events(t.Context(), domain.EventQuery{After: 3, Limit: 3})
		if err != nil || !slices.Equal(ids(page.Events), []int64{6, 8, 10}) {
			t.Errorf("after 3 come %v, %v", ids(page.Events), err)
		}
		if oldest, err := db.OldestEvent(t.Context()); err != nil || !oldest.Equal(time.Unix(2, 0)) {
			t.Errorf("the oldest event is of %v, %v", oldest, err)
		}
	})
}

func TestEventsOfAWrongClockDelayNothingForLong(t *testing.T) {
	onEachEngine(t, func(t *testing.T, db database) {
		// The clock was an hour ahead, then an hour behind.
		for n, second := range []int64{10_000, 13_600, 13_601, 6_400, 6_401, 10_003, 10_004} {
			appendEvents(t, db, received(second, feedRead("alpha", move(t, n))))
		}
		at := func(now int64) domain.ExpiryQuery {
			return domain.ExpiryQuery{Project: "alpha", Before: time.Unix(now-1000, 0), Now: time.Unix(now, 0), Keep: 1, Needed: math.MaxInt64}
		}
		if removed := remove(t, db, at(10_010)); removed != nil {
			t.Errorf("removed %v, all of them behind one that is young", removed)
		}
		if removed := remove(t, db, at(11_002)); !slices.Equal(removed, []int64{1, 4, 5}) {
			t.Errorf("removed %v, want what is old, past what came from the future", removed)
		}
		if removed := remove(t, db, at(14_700)); !slices.Equal(removed, []int64{2, 3, 6}) {
			t.Errorf("removed %v, want all but the last", removed)
		}
	})
}

func TestWhatWasRemovedIsNotStoredAgainAndItsStoriesStayKnown(t *testing.T) {
	onEachEngine(t, func(t *testing.T, db database) {
		blocked := eventRecord(t, `{"type":"story_blocked","story_id":"1_story","story_name":"Story 1","reason":"waits for rain","timestamp_ms":900}`)
		old := feedRead("alpha", move(t, 1), blocked, move(t, 2), move(t, 3))
		appendEvents(t, db, old)
		remove(t, db, expired("alpha", 100, 1))
		// The project is added again at another address, with all its records still in its buffer.
		again := old
		again.Cursor.URL, again.Cursor.Instance = "http://elsewhere", ""
		if added := appendEvents(t, db, again); len(added) != 0 {
			t.Errorf("stored again: %v", added)
		}
		if added := appendEvents(t, db, feedRead("alpha", move(t, 4))); len(added) != 1 || added[0].ID != 5 {
			t.Errorf("added %v, want id 5", added)
		}
		remove(t, db, expired("alpha", 100, 1))
		if id, err := db.LastEventID(t.Context()); id != 5 || err != nil {
			t.Errorf("the last id is %d, %v", id, err)
		}
		if page, err := db.Events(t.Context(), domain.EventQuery{Text: "waits for rain", Limit: 5}); err != nil || len(page.Events) != 0 {
			t.Errorf("found %v, %v", page.Events, err)
		}
		if found, err := db.FindStories(t.Context(), []string{"story", "2"}, 5); err != nil || !slices.Equal(found, []domain.StoryRef{{Project: "alpha", ID: "2_story", Name: "Story 2"}}) {
			t.Errorf("found %v, %v", found, err)
		}
		if name, err := db.StoryName(t.Context(), "alpha", "1_story"); name != "Story 1" || err != nil {
			t.Errorf("the name is %q, %v", name, err)
		}
		if cursors, err := db.FeedCursors(t.Context(), "alpha"); err != nil || len(cursors) != 2 {
			t.Errorf("positions %v, %v", cursors, err)
		}
	})
}
