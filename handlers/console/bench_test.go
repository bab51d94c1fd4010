package console_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/gatewaytest"
)

// benchmarkPath measures the answers of a path with a number of projects, each with six stages and three stories in work.
// change is called before each request.
func benchmarkPath(b *testing.B, projects int, path func(page gatewaytest.Answer) string, change func(s *consoleSite, i int), headers ...string) {
	s := newConsoleSite(b)
	for i := range projects {
		s.add(fmt.Sprintf("project-%03d", i), board("1_backlog: 1_story_a, 2_story_b", "2_current: 14_story_login, 12_story_pay!waiting", "3_qa: 9_story_search", "4_merge:", "5_done: 3_story_c", "6_archived:"))
	}
	for i := range projects {
		s.move(fmt.Sprintf("project-%03d", i), "14_story_login", "1_backlog", "2_current", time.Now())
	}
	address := path(s.Get("/"))
	handler := s.Server.Config.Handler
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

func at(path string) func(gatewaytest.Answer) string {
	return func(gatewaytest.Answer) string { return path }
}

func BenchmarkPagesOf200Projects(b *testing.B) {
	for _, path := range []string{"/", "/projects", "/projects/project-007", "/events"} {
		b.Run(path, func(b *testing.B) { benchmarkPath(b, 200, at(path), nothing) })
	}
}

func BenchmarkPartUnchanged(b *testing.B) {
	benchmarkPath(b, 200, func(page gatewaytest.Answer) string { return partAddress(b, page) }, nothing, "HX-Request", "true")
}

func BenchmarkPartShared(b *testing.B) {
	benchmarkPath(b, 200, at("/?v=old"), nothing, "HX-Request", "true")
}

// BenchmarkPartChanged renders and compresses the overview's part after an event.
func BenchmarkPartChanged(b *testing.B) {
	change := func(s *consoleSite, i int) {
		b.StopTimer()
		s.Record("project-007", fmt.Sprintf(`{"type":%q,"timestamp_ms":%d}`, domain.MergeFailure, i+1))
		b.StartTimer()
	}
	benchmarkPath(b, 200, at("/?v=old"), change, "HX-Request", "true")
}

// BenchmarkStoryPage renders the page of a story with 20 kB of text and 100 events; unchanged is the cost of its part while the
// page is open. The project server answers at once and without a network.
func BenchmarkStoryPage(b *testing.B) {
	for name, headers := range map[string][]string{"page": nil, "unchanged": {"HX-Request", "true"}} {
		b.Run(name, func(b *testing.B) {
			s := newConsoleSite(b)
			s.add("alpha", board("1_backlog:", "2_current: 14_story_login", "3_qa:", "5_done:"))
			s.boards.body = strings.Repeat("A paragraph with `code` and a [link](https://example.com/).\n\n- [ ] open\n- [x] done\n\n", 230)
			for i := range 100 {
				s.move("alpha", "14_story_login", []string{"2_current", "1_backlog"}[i%2], []string{"1_backlog", "2_current"}[i%2], time.Now().Add(time.Duration(i-100)*time.Hour))
			}
			address := "/projects/alpha/stories/14_story_login"
			if headers != nil {
				address = partAddress(b, s.Get(address))
			}
			headers := append([]string{"Accept-Encoding", "gzip"}, headers...)
			for b.Loop() {
				b.ReportMetric(float64(s.ask(address, headers...).Body.Len()), "bytes/answer")
			}
		})
	}
}

// BenchmarkFind measures the results for each letter typed into the header's field, with 1,000 projects.
func BenchmarkFind(b *testing.B) {
	s := newScaleSite(b, 1000)
	for b.Loop() {
		b.ReportMetric(float64(s.ask("/search?q=login", "HX-Request", "true", "Accept-Encoding", "gzip").Body.Len()), "bytes/answer")
	}
}
