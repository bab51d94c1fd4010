package service_test

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/service"
	"switchyard/internal/store/sqlite"
	"switchyard/internal/store/storetest"
)

// boardOnly has no single stories.
type boardOnly struct{ service.StoryServers }

func (boardOnly) Story(context.Context, domain.Project, string) (domain.Story, error) {
	return domain.Story{}, domain.Errorf(domain.NotFound, "no single stories")
}

// newBoard returns a service with a project alpha, whose board shows stories in work.
func newBoard(t *testing.T) (s *service.Service, show func(stories ...string)) {
	db, err := sqlite.Open(t.Context(), storetest.Dir(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	var boards servers
	show = func(stories ...string) {
		stages := []domain.Stage{{Name: "1_backlog"}, {Name: "2_current"}, {Name: "3_done"}}
		stages[2].Items = []domain.Item{{StoryID: "3_done"}}
		for _, id := range stories {
			stages[1].Items = append(stages[1].Items, domain.Item{StoryID: id})
		}
		boards.set("http://alpha", func(*domain.PipelineAnswer) (*domain.PipelineAnswer, error) {
			return &domain.PipelineAnswer{Raw: []byte("[]"), Stages: stages}, nil
		})
	}
	show("1_stays", "2_goes")
	s, err = service.New(t.Context(), service.Options{
		Store: db, Projects: &boards, Stories: boardOnly{}, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Projects.Seed(t.Context(), []domain.Project{{Name: "alpha", URL: "http://alpha"}}); err != nil {
		t.Fatal(err)
	}
	return s, show
}

// TestAClaimEndsWithItsToken, whether that is revoked or expires.
func TestAClaimEndsWithItsToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := newBoard(t)
		s.Pipelines.All(t.Context(), 0)
		hour := time.Hour
		var ids []string
		for i, life := range []*time.Duration{nil, &hour, nil} {
			token, secret, err := s.Access.CreateToken(t.Context(), domain.NamedToken{Name: "script", Role: domain.RoleOperator}, life)
			if err != nil {
				t.Fatal(err)
			}
			ctx := domain.WithActor(t.Context(), &s.Access.Token(t.Context(), secret).Actor)
			story := []string{"1_stays", "2_goes", "3_done"}[i]
			if _, _, err := s.Claims.Claim(ctx, "alpha", service.ClaimRequest{StoryID: story}); err != nil {
				t.Log(err) // the story cannot be read, but it is claimed
			}
			ids = append(ids, token.ID)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- s.Access.Run(ctx) }()
		want := func(when string, stories ...string) {
			t.Helper()
			if got := slices.Sorted(maps.Keys(s.Claims.ByProject()["alpha"])); !slices.Equal(got, stories) {
				t.Errorf("%s: claimed are %v, want %v", when, got, stories)
			}
		}
		want("at first", "1_stays", "2_goes", "3_done")
		if err := s.Access.RevokeToken(t.Context(), ids[0]); err != nil {
			t.Fatal(err)
		}
		want("without the first", "2_goes", "3_done")
		time.Sleep(hour + time.Minute)
		want("when the second has expired", "3_done")
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestAClaimOutlivesItsStoryByAMinute: a story that comes back in time is still claimed; of one that does not, nothing stays.
func TestAClaimOutlivesItsStoryByAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, show := newBoard(t)
		zoe := domain.Administrator(domain.ViaAdminToken)
		ctx, cancel := context.WithCancel(domain.WithActor(t.Context(), &zoe))
		for _, id := range []string{"1_stays", "2_goes", "3_done"} {
			if _, _, err := s.Claims.Claim(ctx, "alpha", service.ClaimRequest{StoryID: id}); err != nil {
				t.Log(err) // the story cannot be read, but it is claimed
			}
		}
		ended := make(chan error)
		go func() { ended <- s.Claims.Run(ctx) }()
		want := func(when string, claims int) {
			t.Helper()
			s.Pipelines.All(t.Context(), 0)
			time.Sleep(40 * time.Second)
			if got := len(s.Claims.ByProject()["alpha"]); got != claims {
				t.Errorf("%s: %d claims, want %d", when, got, claims)
			}
		}
		want("at first", 3) // one is claimed in the done stage, by name
		time.Sleep(time.Hour)
		show()
		want("without stories", 2)
		show("1_stays")
		want("when one is back, and the other gone for a minute", 1)
		show()
		want("without it again", 1)
		want("a minute later", 0)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
