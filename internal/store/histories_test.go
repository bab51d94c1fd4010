package store_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"switchyard/internal/domain"
)

func TestHistoriesAreMergedIntoVisits(t *testing.T) {
	onEachEngine(t, func(t *testing.T, db database) {
		ctx, start := t.Context(), time.Now().Add(-time.Hour).Truncate(time.Second)
		at := func(minute int) time.Time { return start.Add(time.Duration(minute) * time.Minute) }
		if _, err := db.AppendEvents(ctx, []domain.FeedRead{
			transition(t, "alpha", "1", "2_b", "3_c", at(1)), transition(t, "beta", "1", "2_b", "3_c", at(2)),
		}); err != nil {
			t.Fatal(err)
		}
		merge := func(changes int, moves map[string][]domain.Move) {
			t.Helper()
			if changed, err := db.MergeMoves(ctx, 0, "alpha", moves); err != nil || changed != changes {
				t.Fatalf("%d changes, %v, want %d", changed, err, changes)
			}
		}
		want := func(story, visits string) {
			t.Helper()
			if got := visited(t, db, "alpha", story, start); got != visits {
				t.Errorf("%s was in %s, want %s", story, got, visits)
			}
		}
		history := map[string][]domain.Move{
			"1": {{To: "1_a", At: at(-300)}, {From: "1_a", To: "2_b", At: at(-200)}},
			"2": {{To: "1_a", At: at(-100)}, {From: "1_a", To: "4_d", At: at(-50)}},
		}
		merge(4, history)
		merge(0, history)
		want("1", "1_a -300--200, 2_b -200-1, 3_c 1-?")
		want("2", "1_a -100--50, 4_d -50--50")
		if past, err := db.Past(ctx, "alpha"); err != nil || !reflect.DeepEqual(past, domain.Past{}) {
			t.Errorf("%+v, %v", past, err)
		}
		now := time.UnixMilli(at(50).UnixMilli())
		saved := domain.Past{ID: "x", Since: at(-300), Live: at(1)} // since the first move that the stream tells of
		saved.Latest = []domain.Move{{StoryID: "2", From: "1_a", To: "4_d", At: at(-50), Author: "Ada"}}
		for range 2 {
			if err := db.SavePast(ctx, 0, "alpha", saved, now); err != nil {
				t.Fatal(err)
			}
			if past, err := db.Past(ctx, "alpha"); err != nil || past.ID != "x" || !past.Since.Equal(at(-300)) || !past.Live.Equal(at(1)) ||
				len(past.Latest) != 1 || past.Latest[0].Author != "Ada" || !past.Latest[0].At.Equal(at(-50)) {
				t.Errorf("%+v, %v", past, err)
			}
			now = now.Add(time.Hour)
		}
		if stories, err := db.GitStories(ctx, "alpha"); err != nil || !slices.Equal(slices.Sorted(slices.Values(stories)), []string{"1", "2"}) {
			t.Errorf("stories %v, %v", stories, err)
		}
		if name, err := db.StoryName(ctx, "alpha", "2"); err != nil || name != "2" {
			t.Errorf("a story that only git knows is called %q, %v", name, err)
		}
		found, err := db.ProjectVisits(ctx, []string{"alpha", "beta"}, 1000)
		if err != nil || found["alpha"].Past.ID != "x" || found["beta"].Past.ID != "" {
			t.Fatalf("%+v, %v", found, err)
		}
		stages := []domain.Stage{{Name: "1_a"}, {Name: "2_b"}, {Name: "3_c"}, {Name: "4_d"}}
		c := found["alpha"].Charts(domain.NewWorkflow("", stages), at(60))
		if all, git := finished(c.Days); all != 1 || git != 1 {
			t.Errorf("%d finished, %d of them known from git", all, git)
		}

		// Another history replaces it.
		merge(4, map[string][]domain.Move{"1": {{To: "2_b", At: at(-250)}}, "2": nil})
		want("1", "2_b -250-1, 3_c 1-?")
		want("2", "")
		if got := visited(t, db, "beta", "1", start); got != "2_b ?-2, 3_c 2-?" {
			t.Errorf("another project has %s", got)
		}
	})
}

func finished(days []domain.DayCount) (all, git int) {
	for _, d := range days {
		all, git = all+d.Finished, git+d.FromGit
	}
	return all, git
}

func TestAFormerLeaderMergesNoHistory(t *testing.T) {
	db := open(t, engines[1].open(t))
	moves := map[string][]domain.Move{"1": {{To: "1_a", At: time.UnixMilli(1000)}}}
	if _, err := db.MergeMoves(t.Context(), 99, "alpha", moves); !errors.Is(err, domain.ErrNotLeader) {
		t.Errorf("it merges: %v", err)
	}
	if err := db.SavePast(t.Context(), 99, "alpha", domain.Past{ID: "x"}, time.Now()); !errors.Is(err, domain.ErrNotLeader) {
		t.Errorf("it saves: %v", err)
	}
	if past, err := db.Past(t.Context(), "alpha"); err != nil || past.ID != "" {
		t.Errorf("%+v, %v", past, err)
	}
}

// TestAStoryWithManyVisitsIsMergedInPart: only its newest are read, so that a hostile feed makes merging no slower.
func TestAStoryWithManyVisitsIsMergedInPart(t *testing.T) {
	onEachEngine(t, func(t *testing.T, db database) {
		start := time.Now().Add(-time.Hour).Truncate(time.Second)
		var reads []domain.FeedRead
		for i := range domain.MergedVisits {
			reads = append(reads, transition(t, "alpha", "1", fmt.Sprint(i%3), fmt.Sprint((i+1)%3), start.Add(time.Duration(i)*time.Second)))
		}
		if _, err := db.AppendEvents(t.Context(), reads); err != nil {
			t.Fatal(err)
		}
		before := visited(t, db, "alpha", "1", start)
		changed, err := db.MergeMoves(t.Context(), 0, "alpha", map[string][]domain.Move{"1": {{To: "0", At: start.Add(-time.Hour)}}})
		if after := visited(t, db, "alpha", "1", start); err != nil || changed != 0 || after != before {
			t.Errorf("%d changes, %v", changed, err)
		}
	})
}
