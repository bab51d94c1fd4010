package console_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"switchyard/internal/domain"
)

// TestWaitingListsStoriesInWorkByTheirAge: those over their usual time first, across projects.
func TestWaitingListsStoriesInWorkByTheirAge(t *testing.T) {
	s := newConsoleSite(t)
	since := func(id string, hours int) domain.Item {
		return domain.Item{StoryID: id, StoryName: id, Since: time.Now().Add(-time.Duration(hours) * time.Hour)}
	}
	s.add("alpha", []domain.Stage{
		{Name: "1_backlog", Items: []domain.Item{since("idea", 999)}},
		{Name: "2_current", Items: []domain.Item{since("slow", 96), since("quick", 2)}},
		{Name: "5_done"},
	})
	s.add("beta", []domain.Stage{
		{Name: "1_backlog"}, {Name: "2_review", Items: []domain.Item{since("slower", 240)}}, {Name: "5_done"},
	})
	s.Get("/waiting").WantStatus(t, http.StatusOK).
		WantText(t, "<h1>Waiting longest</h1>", "Over their usual time", ">slower<", "10 ×", ">slow<", "4.0 ×", "Within it", ">quick<").
		WantNoText(t, ">idea<")
	s.Get("/waiting?project=alpha").WantText(t, ">slow<").WantNoText(t, ">slower<")
	s.Get("/waiting?stage=Review").WantText(t, ">slower<").WantNoText(t, ">slow<")
	s.Get("/waiting?show=over").WantText(t, ">slow<").WantNoText(t, ">quick<")
	s.Get("/").WantText(t, `href="/waiting?show=over"`)

	// What needs attention can be acknowledged in its row; what has just come waited for no multiple.
	s.add("gamma", []domain.Stage{{Name: "1_backlog"}, {Name: "2_review", Items: []domain.Item{since("new", 0)}}, {Name: "5_done"}})
	s.Get("/waiting?project=gamma").WantText(t, "&lt; 0.1 ×", `aria-label="Actions for new"`).WantNoText(t, ">Acknowledge<")
	s.Get("/waiting?project=beta").WantText(t, `name="key" value="stuck/beta/slower"`, ">Acknowledge<")
	var many []domain.Item
	for n := range 24 {
		many = append(many, since(fmt.Sprintf("many-%02d", n), 1))
	}
	s.add("delta", []domain.Stage{{Name: "1_backlog"}, {Name: "2_work", Items: many}, {Name: "5_done"}})
	s.Get("/waiting?project=delta").WantText(t, ">many-19<", `href="/waiting?project=delta&amp;all=yes"`, ">4 more</a>").WantNoText(t, ">many-20<")
	s.Get("/waiting?project=delta&all=yes").WantText(t, `data-hx-get="/waiting?project=delta&amp;all=yes`, ">many-23<")
	s.follow(s.Submit("/attention/acknowledge", "key", "stuck/beta/slower", "next", "/waiting?project=beta", "for", "4h")).
		WantText(t, "Acknowledged for 4 hours.", ">slower<", " · acknowledged").WantNoText(t, ">Acknowledge</button>")
}
