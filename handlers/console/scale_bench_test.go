package console_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"switchyard/internal/domain"
)

// BenchmarkScale measures what grows with the number of projects, each time after a change of the registry: the registry as
// JSON, fetching every pipeline, and the overview's part, which shows all of it. Project servers answer at
// once and without a network. Equal ns/project at every number means linear cost.
func BenchmarkScale(b *testing.B) {
	operations := map[string]func(s *scaleSite){
		"registry": func(s *scaleSite) { s.ask("/api/gateway") },
		"pipeline": func(s *scaleSite) { s.Pipelines.All(context.Background(), 0) },
		"overview": func(s *scaleSite) { s.ask("/?v=old", "HX-Request", "true", "Accept-Encoding", "gzip") },
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

// BenchmarkFreshBoards measures pages beside a reader who asks all boards afresh again and again, without a network: unchanged ones,
// and ones that have changed each time.
func BenchmarkFreshBoards(b *testing.B) {
	for _, boards := range []string{"unchanged", "changed"} {
		for _, n := range []int{1000, 10_000} {
			b.Run(fmt.Sprintf("%s/%d", boards, n), func(b *testing.B) {
				s := newScaleSite(b, n)
				if boards == "changed" {
					s.servers.changes.Store(true)
				}
				for began := time.Now(); time.Since(began) < time.Duration(n)*time.Millisecond/2; { // the first fetches take longer
					s.ask("/api/gateway/pipeline")
				}
				ctx, cancel := context.WithCancel(b.Context())
				var asking sync.WaitGroup
				asking.Go(func() {
					for ctx.Err() == nil {
						s.ask("/api/gateway/pipeline")
						time.Sleep(100 * time.Millisecond)
					}
				})
				took := map[string][]float64{}
				for b.Loop() {
					for _, path := range []string{"/", "/api/gateway/attention"} {
						began := time.Now()
						s.ask(path)
						took[path] = append(took[path], float64(time.Since(began).Microseconds())/1000)
						time.Sleep(50 * time.Millisecond)
					}
				}
				cancel()
				asking.Wait()
				for path, list := range took {
					slices.Sort(list)
					b.ReportMetric(list[len(list)/2], path+"_median_ms")
					b.ReportMetric(list[len(list)-1], path+"_worst_ms")
				}
			})
		}
	}
}

// newScaleSite returns a gateway with n projects, each with one story in work.
func newScaleSite(b testing.TB, n int) *scaleSite {
	stages := board("1_backlog: 1_story_a", "2_current: 14_story_login", "3_qa:", "4_merge:", "5_done: 3_story_c", "6_archived:")
	servers := &sameBoards{answer: &domain.PipelineAnswer{Stages: stages, Raw: encodeStages(stages)}}
	s := &scaleSite{newConsoleSiteWith(b, servers), servers}
	projects := make([]domain.Project, n)
	for i := range projects {
		projects[i] = domain.Project{Name: fmt.Sprintf("project-%05d", i), URL: "http://127.0.0.1:3001"}
	}
	if err := s.Projects.Seed(context.Background(), projects); err != nil {
		b.Fatal(err)
	}
	return s
}

type scaleSite struct {
	*consoleSite
	servers *sameBoards
}

// sameBoards gives the same answer for every project server.
type sameBoards struct {
	answer  *domain.PipelineAnswer
	changes atomic.Bool // the current story gets another time at each fetch
	fetches atomic.Int64
}

func (b *sameBoards) Pipeline(_ context.Context, _ domain.Project, known *domain.PipelineAnswer) (*domain.PipelineAnswer, error) {
	switch {
	case b.changes.Load():
	case known != nil:
		return known, nil
	default:
		return b.answer, nil
	}
	n, stages := b.fetches.Add(1), slices.Clone(b.answer.Stages)
	stages[1].Items = slices.Clone(stages[1].Items)
	stages[1].Items[0].StoryName = fmt.Sprint("Login ", n)
	return &domain.PipelineAnswer{Stages: stages, Raw: encodeStages(stages)}, nil
}

// ask sends a GET without a network.
func (s *consoleSite) ask(path string, headers ...string) *httptest.ResponseRecorder {
	request := httptest.NewRequest(http.MethodGet, path, nil)
	request.Host = "localhost"
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	recorder := httptest.NewRecorder()
	s.Server.Config.Handler.ServeHTTP(recorder, request)
	if recorder.Code >= http.StatusBadRequest {
		s.Fatal(path, recorder.Code)
	}
	return recorder
}
