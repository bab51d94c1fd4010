package handlers_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"switchyard/internal/domain"
)

// BenchmarkScale measures what grows with the number of projects, each time after a change of the registry: the registry as
// JSON, fetching every pipeline, and the overview's part, which shows all of it. Project servers answer at
// once and without a network. Equal ns/project at every number means linear cost.
func BenchmarkScale(b *testing.B) {
	operations := map[string]func(s *consoleSite){
		"registry": func(s *consoleSite) { s.ask("/api/gateway") },
		"pipeline": func(s *consoleSite) { s.Pipelines.All(context.Background(), 0) },
		"overview": func(s *consoleSite) { s.ask("/?v=old", "HX-Request", "true", "Accept-Encoding", "gzip") },
	}
	for _, n := range []int{10, 100, 1000, 10_000} {
		for _, name := range []string{"registry", "pipeline", "overview"} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				s := newScaleSite(b, n)
				operations[name](s)
				turn := 0
				for b.Loop() {
					b.StopTimer()
					turn++
					if err := s.Projects.Switch(b.Context(), fmt.Sprintf("project-%05d", turn%2)); err != nil {
						b.Fatal(err)
					}
					b.StartTimer()
					operations[name](s)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/project")
			})
		}
	}
}

// newScaleSite returns a gateway with n projects, each with one story in work.
func newScaleSite(b testing.TB, n int) *consoleSite {
	stages := board("1_backlog: 1_story_a", "2_current: 14_story_login", "3_qa:", "4_merge:", "5_done: 3_story_c", "6_archived:")
	s := newConsoleSiteWith(b, sameBoard{&domain.PipelineAnswer{Stages: stages, Raw: encodeStages(stages)}})
	projects := make([]domain.Project, n)
	for i := range projects {
		projects[i] = domain.Project{Name: fmt.Sprintf("project-%05d", i), URL: "http://127.0.0.1:3001"}
	}
	if err := s.Projects.Seed(context.Background(), projects); err != nil {
		b.Fatal(err)
	}
	return s
}

// sameBoard gives the same answer for every project server.
type sameBoard struct{ answer *domain.PipelineAnswer }

func (b sameBoard) Pipeline(context.Context, domain.Project, *domain.PipelineAnswer) (*domain.PipelineAnswer, error) {
	return b.answer, nil
}

// ask sends a GET without a network.
func (s *consoleSite) ask(path string, headers ...string) *httptest.ResponseRecorder {
	request := httptest.NewRequest(http.MethodGet, path, nil)
	request.Host = "localhost"
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	recorder := httptest.NewRecorder()
	s.server.Config.Handler.ServeHTTP(recorder, request)
	if recorder.Code >= http.StatusBadRequest {
		s.Fatal(path, recorder.Code)
	}
	return recorder
}
