package gatewaytest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/upstream"
	"switchyard/internal/waittest"
)

// BoardText is a pipeline with the story 7_pay, as a project server answers it.
const BoardText = `{"project":"x","stages":[{"name":"2_current","items":[{"story_id":"7_pay","story_name":"Pay <b>&",` +
	`"blocked":null,"merge_failure":"conflict","since_ms":5}],"own":1}]}`

// NewProjectClient returns a client of project servers whose timeout is longer than they take on the busiest machine.
func NewProjectClient(t testing.TB) *upstream.Client {
	t.Helper()
	client := upstream.NewClient(time.Minute)
	t.Cleanup(client.Close)
	return client
}

// ProjectServer starts a project server whose pipeline is handler's answer, with the routes that more adds, and returns
// its address.
func ProjectServer(t testing.TB, handler http.HandlerFunc, more ...func(*http.ServeMux)) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/api/pipeline", handler)
	for _, add := range more {
		add(mux)
	}
	server := httptest.NewServer(mux)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server.URL
}

// Says answers each request with text.
func Says(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
}

// StoryHead is the head of the branch of StoryServer's story.
const StoryHead = "c0ffee1234567890c0ffee1234567890c0ffee12"

// StoryServer starts a project server with one story, 7_pay, and its picture form.png. It refuses stale versions.
func StoryServer(t testing.TB) string {
	return ProjectServer(t, Says(BoardText), func(mux *http.ServeMux) {
		mux.HandleFunc("GET /api/stories/7_pay", Says(`{"project":"x","story_id":"7_pay","story_name":"Pay",`+
			`"stage":"2_current","since_ms":5,"blocked":null,"version":"v1","front_matter":{"a":1},"body":"# Pay",`+
			`"criteria":{"done":1,"total":2},"commits":[],"writable":true,`+
			`"work":[{"branch":"story/7","head":"`+StoryHead+`","ahead":1,"conflicts":["a.go"],"link":"name"}]}`))
		mux.HandleFunc("PATCH /api/stories/7_pay", func(w http.ResponseWriter, r *http.Request) {
			var text [100]byte
			n, _ := r.Body.Read(text[:])
			if string(text[:n]) != `{"version":"v1","stage":"3_qa"}` {
				http.Error(w, "the story has changed", http.StatusConflict)
				return
			}
			fmt.Fprint(w, `{"story_id":"7_pay","stage":"3_qa"}`)
		})
		mux.HandleFunc("GET /api/stories/7_pay/changes", func(w http.ResponseWriter, r *http.Request) {
			if r.URL.RawQuery != "" && r.URL.RawQuery != "branch=story%2F7" {
				http.Error(w, "no such place", http.StatusNotFound)
				return
			}
			long := `diff --git a/b.go b/b.go\n+` + strings.Repeat("x", 17<<10)
			fmt.Fprint(w, `{"branch":"story/7","head":"`+StoryHead+`","files":[{"path":"a.go","status":"added","added":1},`+
				`{"path":"b.go","status":"modified"}],"diff":"diff --git a/a.go b/a.go\n+<b>\n`+long+`"}`)
		})
		mux.HandleFunc("POST /api/stories/7_pay/merge", func(w http.ResponseWriter, r *http.Request) {
			var asked struct{ Branch, Head string }
			if json.NewDecoder(r.Body).Decode(&asked) != nil || asked.Branch != "story/7" || asked.Head != StoryHead {
				http.Error(w, "head is not the branch's tip", http.StatusConflict)
				return
			}
			fmt.Fprint(w, `{"merged":"beef5678beef5678"}`)
		})
		mux.HandleFunc("GET /api/picture", func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Get("path") != "form.png" {
				http.NotFound(w, r)
				return
			}
			fmt.Fprint(w, "\x89PNG\r\n\x1a\n")
		})
		mux.HandleFunc("POST /api/stories", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusCreated)
			fmt.Fprint(w, `{"story_id":"8_new"}`)
		})
	})
}

// Add registers a project.
func (s *Site) Add(name, url string) {
	s.Helper()
	if _, err := s.Projects.Add(s.Context(), name, url, nil); err != nil {
		s.Fatal(err)
	}
}

// Record stores records of a project, given as JSON, which arrived when the last of them was made.
func (s *Site) Record(project string, records ...string) {
	s.Helper()
	read := domain.FeedRead{Cursor: domain.FeedCursor{Project: project}}
	for _, text := range records {
		record, err := domain.ParseRecord(json.RawMessage(text))
		if err != nil {
			s.Fatal(err)
		}
		read.Records, read.ReceivedAt = append(read.Records, record), record.At
	}
	if err := s.Events.Record(context.Background(), read); err != nil {
		s.Fatal(err)
	}
}

// Answered waits until each project server has answered, successfully or not: pages do not wait long for them.
func (s *Site) Answered() {
	s.Helper()
	waittest.Until(s, "each project server has answered", func() bool {
		_, all := s.Pipelines.All(s.Context(), time.Hour)
		return !slices.ContainsFunc(all, func(p domain.ProjectPipeline) bool { return p.Error == "no answer yet" })
	})
}
