package storetest

import (
	"context"
	"testing"
	"time"

	"switchyard/internal/domain"
)

// Queries is the part of a database that reads events, stories and stays.
type Queries interface {
	Events(ctx context.Context, q domain.EventQuery) (domain.EventPage, error)
	LastEventID(ctx context.Context) (int64, error)
	OldestEvent(ctx context.Context) (time.Time, error)
	EventProjects(ctx context.Context) ([]string, error)
	FeedCursors(ctx context.Context, project string) ([]domain.FeedCursor, error)
	Size(ctx context.Context) (size, free int64, err error)

	StoryEvents(ctx context.Context, project, id string, limit int) ([]domain.Event, error)
	StoryName(ctx context.Context, project, id string) (string, error)
	FindStories(ctx context.Context, words []string, limit int) ([]domain.StoryRef, error)

	ObserveVisits(ctx context.Context, token int64, o ...domain.Observation) ([]domain.Visit, []string, error)
	ProjectVisits(ctx context.Context, projects []string, now time.Time) (map[string]*domain.ProjectVisits, error)
	StoryVisits(ctx context.Context, project, storyID string, limit int) ([]domain.Visit, error)
	FlowVisits(ctx context.Context, project string, yield func(domain.FlowVisit)) error
	FlowStories(ctx context.Context, numbers []int64) (map[int64]domain.StoryRef, error)
	VisitedProjects(ctx context.Context) ([]string, error)
	RemoveVisits(ctx context.Context, token int64, project string, before time.Time, keep, limit int) (removed int,
		err error)
}

// AskAll runs every query, in each form, on a database that has the stories of Move in the project alpha. It is for
// tests that examine the statements.
func AskAll(t testing.TB, db Queries) {
	t.Helper()
	ctx := t.Context()
	check := func(err error) {
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
					_, err := db.Events(ctx, q)
					check(err)
				}
			}
		}
	}
	_, err := db.StoryEvents(ctx, "alpha", "7_story", 10)
	check(err)
	_, err = db.StoryName(ctx, "alpha", "7_story")
	check(err)
	for _, words := range [][]string{{"story"}, {"story", "1"}, {"st"}} {
		_, err = db.FindStories(ctx, words, 10)
		check(err)
	}
	_, err = db.LastEventID(ctx)
	check(err)
	_, err = db.OldestEvent(ctx)
	check(err)
	_, _, err = db.Size(ctx)
	check(err)
	_, err = db.FeedCursors(ctx, "alpha")
	check(err)
	_, err = db.EventProjects(ctx)
	check(err)
	now := time.Now()
	_, _, err = db.ObserveVisits(ctx, 0, domain.Observation{
		Project: "alpha", Asked: now, Now: now,
		Seen: []domain.Sighting{
			{StoryID: "1_story", Stage: "2_current"}, {StoryID: "9", StoryName: "Nine", Stage: "3_qa"},
		},
	})
	check(err)
	_, err = db.ProjectVisits(ctx, []string{"alpha", "beta"}, now)
	check(err)
	_, err = db.StoryVisits(ctx, "alpha", "1_story", 10)
	check(err)
	check(db.FlowVisits(ctx, "alpha", func(domain.FlowVisit) {}))
	_, err = db.FlowStories(ctx, []int64{1, 2})
	check(err)
	_, err = db.VisitedProjects(ctx)
	check(err)
	_, err = db.RemoveVisits(ctx, 0, "alpha", time.UnixMilli(1), 1000, 10)
	check(err)
}
