package service_test

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
	"switchyard/internal/service"
	"switchyard/internal/store/sqlite"
	"switchyard/internal/store/storetest"
)

// TestAClockThatJumpsAllowsNothingAndTakesNothingAway: whoever holds a permission gets its answer after a jump back, and a denial after
// one forward, which no later jump takes back. A held claim waits as long as it was told to, and no claim ends early.
func TestAClockThatJumpsAllowsNothingAndTakesNothingAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var shared clock.Clock
		clock.Follow(&shared)
		defer clock.Follow(nil)
		jump := func(by time.Duration) {
			now := time.Now()
			shared.Read(now, now, clock.Now().Add(by))
		}
		jump(0)
		db, err := sqlite.Open(t.Context(), storetest.Dir(t))
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		var boards servers
		show := func(stories ...domain.Item) {
			boards.set("http://alpha", func(*domain.PipelineAnswer) (*domain.PipelineAnswer, error) {
				stages := []domain.Stage{{Name: "1_backlog"}, {Name: "2_current", Items: stories}, {Name: "3_done"}}
				return &domain.PipelineAnswer{Raw: []byte("[]"), Stages: stages}, nil
			})
		}
		show(domain.Item{StoryID: "1_story"})
		s, err := service.New(t.Context(), service.Options{
			Store: db, Projects: &boards, Stories: boardOnly{}, Log: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Projects.Seed(t.Context(), []domain.Project{{Name: "alpha", URL: "http://alpha"}}); err != nil {
			t.Fatal(err)
		}
		zoe := domain.Administrator(domain.ViaAdminToken)
		ctx, cancel := context.WithCancel(domain.WithActor(t.Context(), &zoe))
		loops := make(chan error)
		for _, run := range []func(context.Context) error{s.Questions.Run, s.Claims.Run} {
			go func() { loops <- run(ctx) }()
		}

		decided := make(chan service.Decision, 1)
		ask := func() domain.Question {
			go func() {
				d, err := s.Questions.Permission(ctx, ctx, domain.ToolUse{Name: "Bash"}, "", "")
				if err != nil {
					t.Error(err)
				}
				decided <- d
			}()
			time.Sleep(time.Minute)
			return s.Questions.Recent()[0]
		}
		q := ask()
		jump(-3 * time.Hour)
		time.Sleep(2 * time.Hour) // longer than a question is open, but its time has not come
		if _, err := s.Questions.Answer(ctx, q.ID, domain.Answer{Value: domain.Allow}); err != nil {
			t.Errorf("answered after a jump back: %v", err)
		}
		if d := <-decided; !d.Allowed {
			t.Errorf("decided after a jump back: %+v", d)
		}
		time.Sleep(6 * time.Hour)
		q = ask()
		jump(2 * time.Hour)
		if d := <-decided; d.Allowed || d.Message != "Nobody allowed this: the question has expired." {
			t.Errorf("decided after a jump forward: %+v", d)
		}
		time.Sleep(time.Minute)
		jump(-2 * time.Hour)
		if _, err := s.Questions.Answer(ctx, q.ID, domain.Answer{Value: domain.Allow}); domain.CodeOf(err) != domain.Conflict {
			t.Errorf("answered after it has expired: %v", err)
		}

		if _, _, err := s.Claims.Claim(ctx, "alpha", service.ClaimRequest{StoryID: "1_story"}); err != nil {
			t.Fatal(err)
		}
		show() // a branch without the story was checked out
		s.Pipelines.All(ctx, 0)
		for _, by := range []time.Duration{8 * 24 * time.Hour, -16 * 24 * time.Hour} {
			began := time.Now()
			time.AfterFunc(5*time.Second, func() { jump(by) })
			_, found, err := s.Claims.Claim(ctx, "alpha", service.ClaimRequest{Wait: 20 * time.Second})
			if waited := time.Since(began); found || err != nil || waited != 20*time.Second {
				t.Errorf("a claim that is held over a jump of %v: %v, %v, after %v", by, found, err, waited)
			}
			if len(s.Claims.ByProject()["alpha"]) != 1 {
				t.Errorf("the claim has ended at a jump of %v", by)
			}
		}
		cancel()
		for range 2 {
			if err := <-loops; err != nil {
				t.Error(err)
			}
		}
	})
}
