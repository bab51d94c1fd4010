package console_test

import (
	"testing"
	"time"
)

func TestAStuckStoryIsTroubleOfItsProject(t *testing.T) {
	s := newConsoleSite(t)
	stages := board("1_backlog:", "2_current: 14_story_login, 15_story_pay!no key", "3_done:")
	stages[1].Items[0].Since = time.Now().Add(-30 * time.Hour)
	stages[1].Items[1].Since = time.Now().Add(-3 * time.Hour)
	s.add("slow", stages[:])
	s.add("well", board("1_backlog:", "2_current: 1_story_a", "3_done:"))

	s.Get("/projects").WantText(t, "1 blocked", "1 stuck", "well", ">clear<")
	troubled := s.Get("/?show=troubled").WantText(t, "1 blocked", "1 stuck", "1 other project not shown")
	troubled.WantNoText(t, `id="project-well"`)
	s.Get("/projects/slow").WantText(t, "1 blocked, 1 stuck", "Login", "in this stage for", "1 d", "Stuck",
		"Pay", "in this stage for", "3 h", "blocked for", "Blocked: no key")
}
