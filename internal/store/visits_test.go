package store_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/store/storetest"
)

// visited returns a story's visits as "stage from-to", in minutes since start.
func visited(t *testing.T, db database, project, story string, start time.Time) string {
	t.Helper()
	visits, err := db.StoryVisits(t.Context(), project, story, 100)
	if err != nil {
		t.Fatal(err)
	}
	minute := func(at time.Time) string {
		if at.IsZero() {
			return "?"
		}
		return fmt.Sprint(at.Sub(start).Minutes())
	}
	var list []string
	for _, v := range visits {
		list = append(list, fmt.Sprintf("%s %s-%s", v.Stage, minute(v.From), minute(v.To)))
	}
	return strings.Join(list, ", ")
}

// transition returns a read of a feed in which a story moves at a time.
func transition(t *testing.T, project, story, from, to string, at time.Time) domain.FeedRead {
	t.Helper()
	read := storetest.Read(project, storetest.Record(t, fmt.Sprintf(
		`{"type":"stage_transition","story_id":%q,"from_stage":%q,"to_stage":%q,"timestamp_ms":%d}`, story, from, to, at.UnixMilli())))
	read.ReceivedAt = at
	return read
}

func TestVisitsAreStoredWithWhatTheyComeFrom(t *testing.T) {
	onEachEngine(t, func(t *testing.T, db database) {
		ctx, start := t.Context(), time.Now().Add(-time.Hour).Truncate(time.Second)
		at := func(minute int) time.Time { return start.Add(time.Duration(minute) * time.Minute) }
		known := domain.NewProjectVisits(nil, nil)
		apply := func(reads ...domain.FeedRead) {
			t.Helper()
			appended, err := db.AppendEvents(ctx, reads)
			if err != nil {
				t.Fatal(err)
			}
			known = known.With(slices.DeleteFunc(appended.Visits, func(v domain.Visit) bool { return v.Project != "alpha" }))
		}
		see := func(minute int, seen ...domain.Sighting) bool {
			t.Helper()
			changed, contradicted, err := db.ObserveVisits(ctx, 0, domain.Observation{Project: "alpha", Seen: seen, Asked: at(minute), Now: at(minute)})
			if err != nil {
				t.Fatal(err)
			}
			known = known.With(changed)
			return len(contradicted) == 0
		}
		want := func(story, visits string) {
			t.Helper()
			if got := visited(t, db, "alpha", story, start); got != visits {
				t.Errorf("%s was in %s, want %s", story, got, visits)
			}
		}
		apply(
			transition(t, "alpha", "1", "1_a", "2_b", at(1)), transition(t, "alpha", "1", "2_b", "3_c", at(5)),
			transition(t, "beta", "1", "1_a", "2_b", at(2)), transition(t, "alpha", "2", "1_a", "2_b", at(3)),
		)
		apply(transition(t, "alpha", "1", "2_b", "3_c", at(5))) // what is known already changes nothing
		want("1", "1_a ?-1, 2_b 1-5, 3_c 5-?")
		see(10,
			domain.Sighting{StoryID: "2", StoryName: "Two\u00a0\"", Stage: "3_c", Since: at(9), Blocked: true},
			domain.Sighting{StoryID: "3", StoryName: "Three", Stage: "1_a", Since: at(4)},
		)
		want("2", "1_a ?-3, 2_b 3-9, 3_c 9-?")
		apply(transition(t, "alpha", "2", "2_b", "3_c", at(8))) // the event says more
		want("2", "1_a ?-3, 2_b 3-8, 3_c 8-?")
		if see(2, domain.Sighting{StoryID: "2", Stage: "2_b"}) {
			t.Error("an outdated pipeline counts")
		}
		see(20, domain.Sighting{StoryID: "1"})
		want("1", "1_a ?-1, 2_b 1-5, 3_c 5-20")
		want("3", "1_a 4-?")
		if last, err := db.StoryVisits(ctx, "alpha", "3", 1); err != nil || len(last) != 1 || last[0].Source != domain.FromBoard {
			t.Errorf("%+v, %v", last, err)
		}
		if name, err := db.StoryName(ctx, "alpha", "3"); err != nil || name != "Three" {
			t.Errorf("a story that only a pipeline has shown is called %q, %v", name, err)
		}

		// What memory makes of the changes is what the store has.
		found, err := db.ProjectVisits(ctx, []string{"alpha", "beta", "never seen"}, 1000)
		if err != nil || len(found) != 3 {
			t.Fatal(found, err)
		}
		stages := []domain.Stage{
			{Name: "1_a", Items: []domain.Item{{StoryID: "3"}}},
			{Name: "2_b", Items: []domain.Item{{StoryID: "1"}}},
			{Name: "3_c", Items: []domain.Item{{StoryID: "2", Blocked: "why"}}},
		}
		got := found["alpha"].Times(stages)
		if last := got[2].Items[0]; !reflect.DeepEqual(got, known.Times(stages)) || !last.Since.Equal(at(8)) || !last.BlockedSince.Equal(at(10)) {
			t.Errorf("times %+v", got)
		}
		now := time.Now()
		if got, want := found["alpha"].Charts(domain.NewWorkflow("", stages), now), known.Charts(domain.NewWorkflow("", stages), now); !reflect.DeepEqual(got, want) || got.Stages[0].Visits != 2 {
			t.Errorf("charts %+v, want %+v", got, want)
		}
		if seen, settled := found["beta"].Differing(&domain.PipelineAnswer{}, now, 1); len(seen) != 1 || !settled {
			t.Errorf("%+v, %t", seen, settled)
		}
	})
}

func TestOldVisitsAreRemoved(t *testing.T) {
	onEachEngine(t, func(t *testing.T, db database) {
		now := time.Now().Truncate(time.Second)
		for i := range 20 {
			appendEvents(t, db, transition(t, "alpha", fmt.Sprint(i), "1_a", "2_b", now.Add(time.Duration(i-100)*time.Hour)),
				transition(t, "alpha", fmt.Sprint(i), "2_b", "3_c", now.Add(time.Duration(i-20)*time.Hour)))
		}
		remove := func(before time.Time, keep, limit, want int) {
			t.Helper()
			if removed, err := db.RemoveVisits(t.Context(), 0, "alpha", before, keep, limit); err != nil || removed != want {
				t.Errorf("%d were removed, %v, want %d", removed, err, want)
			}
		}
		remove(now.Add(-90*time.Hour), 1000, 7, 7)
		remove(now.Add(-90*time.Hour), 1000, 7, 4) // those that ended in the 90th hour, too
		remove(now.Add(-90*time.Hour), 10, 100, 19)
		if got := visited(t, db, "alpha", "0", now); !strings.HasSuffix(got, "3_c -1200-?") {
			t.Errorf("left is %s", got)
		}
		if names, err := db.VisitedProjects(t.Context()); err != nil || !slices.Equal(names, []string{"alpha"}) {
			t.Errorf("%v, %v", names, err)
		}
	})
}

// TestTheNewestVisitsAreRead, or all of them, which says that none is missing.
func TestTheNewestVisitsAreRead(t *testing.T) {
	onEachEngine(t, func(t *testing.T, db database) {
		now := time.Now()
		for i := range 9 {
			appendEvents(t, db, transition(t, "alpha", fmt.Sprint(i), "2_b", "3_done", now.Add(time.Duration(i-20)*time.Minute)))
		}
		for newest, want := range map[int]bool{4: false, 9: false, 10: true} {
			found, err := db.ProjectVisits(t.Context(), []string{"alpha"}, newest)
			if err != nil {
				t.Fatal(err)
			}
			finished := 0
			for _, day := range found["alpha"].Charts(domain.NewWorkflow("", []domain.Stage{{Name: "1_a"}, {Name: "2_b"}, {Name: "3_done"}}), now).Days {
				finished += day.Finished
			}
			if finished != min(newest, 9) || found["alpha"].Whole != want {
				t.Errorf("of the newest %d: %d were finished, whole %t", newest, finished, found["alpha"].Whole)
			}
		}
	})
}
