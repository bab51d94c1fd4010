package console_test

import "testing"

func TestAMissingStoryLeadsToItsProject(t *testing.T) {
	s := newConsoleSite(t)
	s.add("web shop", board("1_backlog: 1_story_login"))
	s.Get("/projects/web%20shop/stories/9_none").WantStatus(t, 404).WantText(t, `href="/projects/web%20shop"`, "Go to web shop")
	s.Get("/projects/none/stories/9_none").WantStatus(t, 404).WantNoText(t, "Go to")
	s.Get("/projects/none").WantStatus(t, 404).WantNoText(t, "Go to")
}
