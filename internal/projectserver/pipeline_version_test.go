package projectserver_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"switchyard/internal/waittest"
)

const version = "Pipeline-Version"

func TestTheFeedNamesTheVersionOfThePipeline(t *testing.T) {
	s := newStories(t, false, map[string]string{"1_backlog/7_story_login.md": "---\nname: Log in\n---\n"})
	_, _, feed := s.ask("GET", "/api/events", "")
	_, _, pipeline := s.ask("GET", "/api/pipeline", "")
	if v := feed.Get(version); v == "" || pipeline.Get("ETag") != `"`+v+`"` {
		t.Fatalf("version %q of a pipeline with the tag %q", v, pipeline.Get("ETag"))
	}
	s.write("1_backlog/8_story_new.md", "new")
	waittest.Until(t, "another version", func() bool {
		_, _, now := s.ask("GET", "/api/events", "")
		return now.Get(version) != feed.Get(version)
	})
}

// held requests the feed and sends the answer's header to a channel.
func (s *stories) held(query string) <-chan http.Header {
	answered := make(chan http.Header, 1)
	go func() {
		_, body, header := s.ask("GET", "/api/events?"+query, "")
		header.Set("Body", body)
		answered <- header
	}()
	return answered
}

func TestWhoKnowsThePipelineIsAnsweredWhenItChanges(t *testing.T) {
	const story = "1_backlog/7_story_login.md"
	for name, test := range map[string]struct {
		change func(s *stories)
		events bool
	}{
		"an arrival":         {func(s *stories) { s.write("1_backlog/8_story_new.md", "new") }, false},
		"a departure":        {func(s *stories) { _ = os.Remove(filepath.Join(s.dir, story)) }, false},
		"an unblocking":      {func(s *stories) { s.write(story, "---\nname: Log in\n---\n") }, false},
		"the directory goes": {func(s *stories) { _ = os.Rename(s.dir, s.dir+".away") }, false},
		"an event":           {func(s *stories) { s.write(story, "---\nname: Log in\nblocked: other\n---\n") }, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStories(t, false, map[string]string{story: "---\nname: Log in\nblocked: why\n---\n"})
			_, _, before := s.ask("GET", "/api/events", "")
			query := "wait=60s&pipeline=" + before.Get(version)
			answered := s.held(query)
			test.change(s)
			select {
			case answer := <-answered:
				if got := answer.Get("Body"); answer.Get(version) == before.Get(version) || (got != "[]") != test.events {
					t.Errorf("version %q after %q, events %s", answer.Get(version), before.Get(version), got)
				}
			case <-time.After(time.Minute):
				t.Fatal("no reader wakes up")
			}
			select {
			case <-s.held(query): // it has already changed
			case <-time.After(time.Minute):
				t.Error("who knows an older pipeline waits")
			}
		})
	}
}

func TestWithoutAVersionTheFeedWaitsForEventsAlone(t *testing.T) {
	s := newStories(t, false, map[string]string{"1_backlog/7_story_login.md": "---\nblocked: why\n---\n"})
	_, _, before := s.ask("GET", "/api/events", "")
	answered := s.held("wait=60s")
	s.write("1_backlog/7_story_login.md", "unblocked")
	waittest.Until(t, "another version", func() bool {
		_, _, now := s.ask("GET", "/api/events", "")
		return now.Get(version) != before.Get(version)
	})
	s.write("1_backlog/7_story_login.md", "---\nblocked: again\n---\n")
	if body := (<-answered).Get("Body"); !strings.Contains(body, "story_blocked") {
		t.Errorf("answered with %s", body)
	}
}
