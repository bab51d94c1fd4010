package service_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/service"
	"switchyard/internal/store/sqlite"
	"switchyard/internal/store/storetest"
)

// agreeingStories is a server that makes any change, and says a stage of its own.
type agreeingStories struct {
	service.StoryServers
	stage string
}

func (s agreeingStories) Story(_ context.Context, _ domain.Project, id string) (domain.Story, error) {
	return domain.Story{ID: id, Stage: "1_a", File: &domain.StoryFile{}, Reachable: true}, nil
}

func (s agreeingStories) PatchStory(context.Context, domain.Project, string, []byte) (int, []byte, error) {
	return 200, fmt.Appendf(nil, `{"stage":%q}`, s.stage), nil
}

// TestOfALargeChangeOnlyWhatAnEventHasIsKept: a page reads thousands of changes.
func TestOfALargeChangeOnlyWhatAnEventHasIsKept(t *testing.T) {
	db, err := sqlite.Open(t.Context(), storetest.Dir(t))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	long := strings.Repeat("a", 100<<10)
	s, err := service.New(t.Context(), service.Options{
		Store: db, Stories: agreeingStories{stage: long}, Projects: &servers{}, Bot: idleBot{}, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Projects.Seed(t.Context(), []domain.Project{{Name: "alpha", URL: "http://alpha"}}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Stories.Patch(t.Context(), "alpha", "7", fmt.Appendf(nil, `{"blocked":%q}`, long)); err != nil {
		t.Fatal(err)
	}
	made, err := db.ChangesBetween(t.Context(), time.UnixMilli(0), time.Now().Add(time.Hour), 9)
	if err != nil || len(made) != 2 {
		t.Fatalf("%d changes, %v", len(made), err)
	}
	for _, c := range made {
		if len(c.Value) > domain.MaxText {
			t.Errorf("%s: %d bytes are kept", c.Type, len(c.Value))
		}
	}
}

// tellingStories is a server whose event of a move comes before its answer.
type tellingStories struct {
	agreeingStories
	tell func()
}

func (s tellingStories) PatchStory(ctx context.Context, p domain.Project, id string, body []byte) (int, []byte, error) {
	s.tell()
	return s.agreeingStories.PatchStory(ctx, p, id, body)
}

// TestAMoveIsNeverSeenWithoutItsAuthor, though its event comes before the answer of the project server.
func TestAMoveIsNeverSeenWithoutItsAuthor(t *testing.T) {
	db, err := sqlite.Open(t.Context(), storetest.Dir(t))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var s *service.Service
	seen := func() string {
		story, err := s.Stories.Get(t.Context(), "alpha", "7")
		if err != nil || len(story.History) != 1 {
			t.Fatalf("%+v, %v", story.History, err)
		}
		all, err := s.Events.WithAuthors(t.Context(), []domain.Event{story.History[0].Event})
		if err != nil || all[0].By != story.History[0].By {
			t.Errorf("%+v, %v", all, err)
		}
		return story.History[0].By
	}
	up := tellingStories{agreeingStories{stage: "2_b"}, func() {
		r, err := domain.ParseRecord(fmt.Appendf(nil, `{"type":"stage_transition","story_id":"7","story_name":"S","from_stage":"1_a","to_stage":"2_b","timestamp_ms":%d}`, time.Now().UnixMilli()))
		if err != nil {
			t.Fatal(err)
		}
		recordFeed(t, s, domain.FeedRead{Cursor: domain.FeedCursor{Project: "alpha", URL: "http://alpha"}, Records: []domain.Record{r}, ReceivedAt: time.Now()})
		if by := seen(); by != "op" {
			t.Errorf("before the answer: by %q", by)
		}
	}}
	s, err = service.New(t.Context(), service.Options{Store: db, Stories: up, Projects: &servers{}, Bot: idleBot{}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Projects.Seed(t.Context(), []domain.Project{{Name: "alpha", URL: "http://alpha"}}); err != nil {
		t.Fatal(err)
	}
	ctx := domain.WithActor(t.Context(), &domain.Actor{Who: "op", Account: "op", Role: domain.RoleOperator, Channel: domain.ChannelBot})
	if _, _, err := s.Stories.Patch(ctx, "alpha", "7", []byte(`{"stage":"2_b"}`)); err != nil {
		t.Fatal(err)
	}
	if by := seen(); by != "op" {
		t.Errorf("afterwards: by %q", by)
	}
}
