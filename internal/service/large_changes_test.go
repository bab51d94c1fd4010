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
