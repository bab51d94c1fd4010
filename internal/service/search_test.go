package service_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/service"
	"switchyard/internal/store/sqlite"
	"switchyard/internal/store/storetest"
	"switchyard/internal/waittest"
)

// countedTexts has one story with the text in every project, and counts how often it is asked.
type countedTexts struct {
	service.StoryServers
	asked atomic.Int64
}

func (c *countedTexts) FindTexts(_ context.Context, p domain.Project, _ string, _ int) ([]domain.TextRef, int, error) {
	c.asked.Add(1)
	return []domain.TextRef{{StoryRef: domain.StoryRef{Project: p.Name, ID: "1_a"}}}, 1, nil
}

func TestASearchAsksSomeProjectsForTextsAndCountsTheOthers(t *testing.T) {
	db, err := sqlite.Open(t.Context(), storetest.Dir(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	texts := &countedTexts{}
	s, err := service.New(t.Context(), service.Options{
		Store: db, Log: slog.New(slog.DiscardHandler), Projects: hugeBoards{}, Stories: texts, AgentTimeout: time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	projects := make([]domain.Project, 403)
	for i := range projects {
		projects[i] = domain.Project{Name: fmt.Sprintf("project-%04d", i), URL: "http://p"}
	}
	if err := s.Projects.Seed(t.Context(), projects); err != nil {
		t.Fatal(err)
	}
	var found domain.SearchResult
	waittest.Until(t, "all boards are known", func() bool { // the first searches do not wait for all
		texts.asked.Store(0)
		found, err = s.Search.Find(t.Context(), service.SearchQuery{Text: "login", Limit: 5, Texts: true})
		return err != nil || found.Silent == 3
	})
	if err != nil {
		t.Fatal(err)
	}
	if texts.asked.Load() != 400 || found.Silent != 3 || found.Total.Texts != 400 || len(found.Texts) != 5 {
		t.Errorf("%d asked, %d silent, %d of %d texts", texts.asked.Load(), found.Silent, len(found.Texts), found.Total.Texts)
	}
}
