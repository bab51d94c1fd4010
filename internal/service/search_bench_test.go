package service_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/service"
	"switchyard/internal/store/sqlite"
	"switchyard/internal/store/storetest"
)

// hugeBoards has twenty stories for every project.
type hugeBoards struct{}

func (hugeBoards) Pipeline(_ context.Context, p domain.Project, known *domain.PipelineAnswer) (*domain.PipelineAnswer, error) {
	if known != nil {
		return known, nil
	}
	stages := []domain.Stage{{Name: "1_backlog"}, {Name: "2_current"}}
	for i := range 20 {
		stages[i%2].Items = append(stages[i%2].Items, domain.Item{StoryID: fmt.Sprintf("%d_story_login", i), StoryName: fmt.Sprintf("Überarbeite die Anmeldung %d von %s", i, p.Name)})
	}
	return &domain.PipelineAnswer{Stages: stages}, nil
}

func BenchmarkSearch(b *testing.B) {
	db, err := sqlite.Open(b.Context(), storetest.Dir(b))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { db.Close() })
	s, err := service.New(b.Context(), service.Options{
		Store: db, Log: slog.New(slog.DiscardHandler), Projects: hugeBoards{}, AgentTimeout: time.Minute,
	})
	if err != nil {
		b.Fatal(err)
	}
	projects := make([]domain.Project, 1000)
	for i := range projects {
		projects[i] = domain.Project{Name: fmt.Sprintf("project-%d", i), URL: "http://p"}
	}
	if err := s.Projects.Seed(b.Context(), projects); err != nil {
		b.Fatal(err)
	}
	for i := range 1000 {
		read := domain.FeedRead{Cursor: domain.FeedCursor{Project: projects[i].Name}, ReceivedAt: time.UnixMilli(1)}
		for j := range 20 {
			record, err := domain.ParseRecord(fmt.Appendf(nil, `{"type":"merge_failure","story_id":"%d_story_login","story_name":"Old name","reason":"r","timestamp_ms":%d}`, j, j))
			if err != nil {
				b.Fatal(err)
			}
			read.Records = append(read.Records, record)
		}
		if err := s.Events.Record(b.Context(), read); err != nil {
			b.Fatal(err)
		}
	}
	for _, text := range []string{"a", "uberarbeite 19", "no such text", "zq"} {
		if _, err := s.Search.Find(b.Context(), service.SearchQuery{Text: text, Limit: 20}); err != nil {
			b.Fatal(err)
		}
		b.Run(text, func(b *testing.B) {
			for b.Loop() {
				if _, err := s.Search.Find(b.Context(), service.SearchQuery{Text: text, Limit: 20}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
