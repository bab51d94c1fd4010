package storetest

import (
	"testing"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/store"
)

// AskAll runs every query, in each form, on a database that has the stories of Move in the project alpha. It is for
// tests that examine the statements.
func AskAll(t testing.TB, db *store.Tables) {
	t.Helper()
	ctx := t.Context()
	check := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, project := range []string{"", "alpha"} {
		for _, kind := range []domain.EventType{"", domain.StageTransition, domain.StoryBlocked} {
			for _, text := range []string{"", "alpha", "story", "Story 7", "qa", "zz", "nothing of that kind"} {
				for _, q := range []domain.EventQuery{
					{},
					{After: 5},
					{Backward: true},
					{Backward: true, Before: 100},
					{ByTime: true},
					{ByTime: true, From: 5, To: 90, BeforeAt: 60, Before: 7},
				} {
					q.Project, q.Type, q.Text, q.Limit = project, kind, text, 10
					check(db.Events(ctx, q))
				}
			}
		}
	}
	check(db.StoryEvents(ctx, "alpha", "7_story", 10))
	check(db.StoryName(ctx, "alpha", "7_story"))
	for _, words := range [][]string{{"story"}, {"story", "1"}, {"st"}} {
		check(db.FindStories(ctx, words, 10))
	}
	check(db.LastEventID(ctx))
	check(db.OldestEvent(ctx))
	check(db.FeedCursors(ctx, "alpha"))
	check(db.EventProjects(ctx))
	now := time.Now()
	_, _, err := db.ObserveVisits(ctx, 0, domain.Observation{
		Project: "alpha", Asked: now, Now: now,
		Seen: []domain.Sighting{
			{StoryID: "1_story", Stage: "2_current"}, {StoryID: "9", StoryName: "Nine", Stage: "3_qa"},
		},
	})
	check(nil, err)
	check(db.ProjectVisits(ctx, []string{"alpha", "beta"}, 1000))
	check(db.StoryVisits(ctx, "alpha", "1_story", 10))
	check(db.StoryNames(ctx, []domain.StoryKey{{Project: "alpha", ID: "1_story"}}))
	check(db.StoryOf(ctx, 1))
	check(db.VisitedProjects(ctx))
	check(db.RemoveVisits(ctx, 0, "alpha", time.UnixMilli(1), 1000, 10))
}
