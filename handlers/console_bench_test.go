package handlers_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"switchyard/internal/domain"
)

// benchmarkPath measures how a path is answered at a number of projects, each with six stages and three stories in work.
// change is called before each request.
func benchmarkPath(b *testing.B, projects int, path func(page answer) string, change func(s *consoleSite, i int), headers ...string) {
	s := newConsoleSite(b)
	for i := range projects {
		s.add(fmt.Sprintf("project-%03d", i), board("1_backlog: 1_story_a, 2_story_b", "2_current: 14_story_login, 12_story_pay!waiting", "3_qa: 9_story_search", "4_merge:", "5_done: 3_story_c", "6_archived:"))
	}
	for i := range projects {
		s.move(fmt.Sprintf("project-%03d", i), "14_story_login", "1_backlog", "2_current", time.Now())
	}
	address := path(s.get("/"))
	handler := s.server.Config.Handler
	i := 0
	for b.Loop() {
		change(s, i)
		i++
		request := httptest.NewRequest(http.MethodGet, address, nil)
		request.Host = "localhost"
		request.Header.Set("Accept-Encoding", "gzip")
		for j := 0; j < len(headers); j += 2 {
			request.Header.Set(headers[j], headers[j+1])
		}
		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, request)
		b.ReportMetric(float64(recorder.Body.Len()), "bytes/answer")
		b.ReportMetric(float64(recorder.Code), "status")
	}
}

func nothing(*consoleSite, int) {}

func at(path string) func(answer) string { return func(answer) string { return path } }

func BenchmarkPagesOf200Projects(b *testing.B) {
	for _, path := range []string{"/", "/projects", "/projects/project-007", "/events"} {
		b.Run(path, func(b *testing.B) { benchmarkPath(b, 200, at(path), nothing) })
	}
}

func BenchmarkPartUnchanged(b *testing.B) {
	benchmarkPath(b, 200, func(page answer) string { return page.partAddress(b) }, nothing, "HX-Request", "true")
}

func BenchmarkPartShared(b *testing.B) {
	benchmarkPath(b, 200, at("/?v=old"), nothing, "HX-Request", "true")
}

// BenchmarkPartChanged renders and compresses the overview's part after an event.
func BenchmarkPartChanged(b *testing.B) {
	change := func(s *consoleSite, i int) {
		b.StopTimer()
		s.record("project-007", fmt.Sprintf(`{"type":%q,"timestamp_ms":%d}`, domain.MergeFailure, i+1))
		b.StartTimer()
	}
	benchmarkPath(b, 200, at("/?v=old"), change, "HX-Request", "true")
}
