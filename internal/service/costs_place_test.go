package service_test

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/service"
	"switchyard/internal/store/sqlite"
	"switchyard/internal/store/storetest"
)

// TestACallIsForTheStoryOfItsTime, whenever it is told: the one that its sender held then or had just given up, else its session's.
func TestACallIsForTheStoryOfItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, err := sqlite.Open(t.Context(), storetest.Dir(t))
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		const held, ofBranch = "1_held", "2_of_branch"
		var boards servers
		boards.set("http://alpha", func(*domain.PipelineAnswer) (*domain.PipelineAnswer, error) {
			stages := []domain.Stage{{Name: "1_backlog"}, {Name: "2_current", Items: []domain.Item{{StoryID: held}, {StoryID: ofBranch}}}, {Name: "3_done"}}
			links := []domain.PlaceLink{{Branch: "story/2", StoryID: ofBranch}}
			return &domain.PipelineAnswer{Raw: []byte("[]"), Stages: stages, Board: domain.BoardPlace{Links: links}}, nil
		})
		s, err := service.New(t.Context(), service.Options{Store: db, Projects: &boards, Stories: boardOnly{}, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Projects.Seed(t.Context(), []domain.Project{{Name: "alpha", URL: "http://alpha"}}); err != nil {
			t.Fatal(err)
		}
		zoe := domain.Administrator(domain.ViaAdminToken)
		ctx := domain.WithActor(t.Context(), &zoe)
		s.Pipelines.All(ctx, 0)
		time.Sleep(48 * time.Hour)
		claimed := time.Now()
		if _, _, err := s.Claims.Claim(ctx, "alpha", service.ClaimRequest{StoryID: held}); err != nil {
			t.Fatal(err)
		}
		s.Sessions.Receive(ctx, domain.HookEvent{Name: "Stop", Session: "on the branch", Project: "alpha", Host: "h", Worktree: "/w", Branch: "story/2"})
		calls := map[string]int64{}
		want := func(what, session string, at time.Time, id string) {
			t.Helper()
			call := domain.Call{Key: what, At: at, Client: "codex", Session: session, Model: "m"}
			if err := s.Costs.Record(ctx, []domain.Call{call}); err != nil {
				t.Fatal(err)
			}
			if id != "" {
				calls[id]++
			}
			for _, story := range []string{held, ofBranch} {
				c, err := s.Costs.Story(ctx, "alpha", story)
				if err != nil || calls[story] > 0 && (c == nil || c.Calls != calls[story]) || calls[story] == 0 && c != nil {
					t.Errorf("%s: %s has %+v, %v; want %d calls", what, story, c, err, calls[story])
				}
			}
		}
		time.Sleep(time.Hour)
		want("a claim", "", time.Now(), held)
		want("a clock that is ahead", "", time.Now().Add(61*time.Second), held)
		if c, err := s.Costs.Story(ctx, "alpha", held); err != nil || !c.Last.Equal(time.Now()) {
			t.Errorf("a clock that is ahead is believed: %+v, %v", c, err)
		}
		want("a clock that is a day behind", "", time.Now().Add(-25*time.Hour), held)
		want("yesterday", "", time.Now().Add(-23*time.Hour), "")
		if err := s.Claims.Release(ctx, "alpha", held); err != nil {
			t.Fatal(err)
		}
		ended := time.Now()
		time.Sleep(3 * time.Minute)
		want("a claim that has ended since", "", ended.Add(-time.Minute), held)
		want("a claim that had just ended", "", ended.Add(2*time.Minute), held)
		want("a claim that had ended long before", "", ended.Add(2*time.Minute+time.Second), "")
		want("a claim that was not yet", "", claimed.Add(-time.Second), "")
		want("a session before its own story", "on the branch", ended, held)
		want("a session", "on the branch", time.Now(), ofBranch)
		want("a session that nobody knows", "of nobody", time.Now(), "")
		for _, id := range []string{held, ofBranch} {
			if _, _, err := s.Claims.Claim(ctx, "alpha", service.ClaimRequest{StoryID: id}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		for _, id := range []string{ofBranch, held} { // in one millisecond
			if err := s.Claims.Release(ctx, "alpha", id); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		want("what was given up last", "", time.Now(), held)
	})
}
