package service_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/service"
	"switchyard/internal/store/sqlite"
	"switchyard/internal/store/storetest"
)

// slowStories takes 20 ms to return a story, whose name is the number of the call.
type slowStories struct {
	service.StoryServers
	calls atomic.Int64
	panic bool
}

func (s *slowStories) Story(_ context.Context, _ domain.Project, id string) (domain.Story, error) {
	n := s.calls.Add(1)
	time.Sleep(20 * time.Millisecond) // of the bubble's clock
	if s.panic {
		panic("no such luck")
	}
	return domain.Story{ID: id, Name: fmt.Sprint(n), File: &domain.StoryFile{}, Reachable: true}, nil
}

func (s *slowStories) PatchStory(context.Context, domain.Project, string, []byte) (int, []byte, error) {
	return 200, nil, nil
}

func TestReadersOfAStoryShareCalls(t *testing.T) {
	dir := storetest.Dir(t)
	synctest.Test(t, func(t *testing.T) {
		db, err := sqlite.Open(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		up := &slowStories{}
		g, err := service.New(t.Context(), service.Options{Store: db, Stories: up, Projects: &servers{}, Bot: idleBot{}, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		if err := g.Projects.Seed(t.Context(), []domain.Project{{Name: "alpha", URL: "http://alpha"}}); err != nil {
			t.Fatal(err)
		}
		look := func() (names []string) {
			var all sync.WaitGroup
			var mu sync.Mutex
			for range 50 {
				all.Go(func() {
					story, err := g.Stories.Recent(t.Context(), "alpha", "7")
					if err != nil {
						t.Error(err)
					}
					mu.Lock()
					defer mu.Unlock()
					names = append(names, story.Name)
				})
			}
			all.Wait()
			return names
		}
		for i, pause := range []time.Duration{0, time.Second, time.Second} {
			time.Sleep(pause)
			look()
			if want := int64(i + 1); up.calls.Load() != want {
				t.Errorf("round %d: %d calls, want %d", i, up.calls.Load(), want)
			}
		}
		if _, _, err := g.Stories.Patch(t.Context(), "alpha", "7", []byte("{}")); err != nil {
			t.Fatal(err)
		}
		if names := look(); names[0] != "5" {
			t.Errorf("after a change the page shows the story as it was: %s", names[0])
		}
		time.Sleep(10 * time.Second)
		up.panic = true
		if _, err := g.Stories.Recent(t.Context(), "alpha", "7"); domain.CodeOf(err) != domain.Internal {
			t.Errorf("after a panic: %v", err)
		}
		db.Close()
		synctest.Wait()
	})
}
