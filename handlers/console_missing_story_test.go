package handlers_test

import "testing"

func TestAMissingStoryLeadsToItsProject(t *testing.T) {
	s := newConsoleSite(t)
	s.add("web shop", board("1_backlog: 1_story_login"))
	s.get("/projects/web%20shop/stories/9_none").wantStatus(t, 404).wantText(t, `href="/projects/web%20shop"`, "Go to web shop")
	s.get("/projects/none/stories/9_none").wantStatus(t, 404).wantNoText(t, "Go to")
	s.get("/projects/none").wantStatus(t, 404).wantNoText(t, "Go to")
}
