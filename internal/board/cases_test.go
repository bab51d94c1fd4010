package board_test

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"switchyard/internal/board"
	"switchyard/internal/feed"
)

// TestBoardsAsPeopleHaveThem: a board shows what its own tool does, however it is written.
func TestBoardsAsPeopleHaveThem(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ dir, layout, want string }{
		{"project-name-with-a-colon", "backlog.md", "4_done: task-1 (Mend the till) 1/2"},
		{"two-configurations", "backlog.md", "4_baking: task-1 (Rolls for the school) 1/2"},
		{"cloned-without-tasks", "backlog.md", ""},
		{
			"status-on-hold", "backlog.md", "3_in_progress: task-3 (Rolls) 1/2\n" +
				"7_on_hold other: task-1 (Mend the till) 1/2\n8_won_t_do other: task-2 (A neon sign) 1/2",
		},
		{"tracked-elsewhere", "openspec", "3_doing: add-buns (Add buns) 2/3\n4_done: add-pies (Add pies) 1/1"},
		{"first-letter", "openspec", "2_planned: öfen-warten (Öfen warten) 0/1\n2_planned: 烤-面包 (烤 面包) 0/1"},
		{"heading-in-a-comment", "openspec", "2_planned: add-buns (Add buns) 0/1"},
		{"old-list-beside-tags", "task-master", "1_pending: 1 (Buy yeast)\n3_review: 2 (Bake rye bread)"},
		{
			"waits-for", "task-master", "1_pending: 1 (Serve) after 2, 3 waits for 2\n1_pending: 2 (Bake) after 3\n" +
				"4_done: 3 (Buy flour)",
		},
		{
			"two-sprints", "bmad", "1_backlog: cafe/1-2-chairs (1 2 chairs)\n" +
				"3_in_progress: cafe/1-1-oven (1 1 oven)\n4_review: 1-1-oven (1 1 oven)",
		},
		{"output-folder", "bmad", "2_ready_for_dev: 1-1-oven (1 1 oven)"},
		{"location-on-a-laptop", "bmad", "3_in_progress: 1-1-oven (Story 1.1: A second oven) 1/2"},
		{
			"blocked-in-bmad", "bmad", "3_in_progress: 1-1-oven (1 1 oven) blocked: The status of the story is blocked.\n" +
				"4_review: 1-2-till (1 2 till)",
		},
		{"specs-in-specify", "spec-kit", "1_draft: late-shift (Late shift)\n3_doing: 001-pretzels (Pretzels) 1/2"},
		{"legend", "spec-kit", "4_done: 001-pretzels (Pretzels) 2/2"},
		{"bugfix", "kiro", "3_doing: burnt-crust (Burnt crust) 1/2"},
		{
			"chinese-headings", "kiro", "1_draft: moon-cakes (Moon cakes)\n1_draft: steamed-buns (Steamed buns)\n" +
				"1_draft: tea (Tea in the afternoon)",
		},
		{"fence-in-a-list", "kiro", "3_doing: till (The till) 1/2"},
	} {
		t.Run(c.dir, func(t *testing.T) {
			t.Parallel()
			dir, err := filepath.Abs("testdata/cases/" + c.dir)
			if err != nil {
				t.Fatal(err)
			}
			found, err := board.Find(dir, "")
			if err != nil || len(found) != 1 || found[0] != (board.Found{Layout: c.layout, Dir: dir}) {
				t.Fatalf("found %v, %v", found, err)
			}
			b, err := board.Open(board.Options{
				Dir: dir, Layout: c.layout, Log: slog.New(slog.DiscardHandler), Record: func(...feed.Notification) {},
			})
			if err != nil {
				t.Fatal(err)
			}
			if got := shows(b.View()); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
			for _, stage := range b.View().Stages {
				for _, story := range stage.Stories {
					if d, err := b.Read(story.ID); err != nil || d.Name != story.Name || d.Stage != stage.Name {
						t.Errorf("%s is read as %+v, %v", story.ID, d, err)
					}
				}
			}
		})
	}
}

// shows returns the stories of a board with their stages.
func shows(view *board.View) string {
	var lines []string
	for _, stage := range view.Stages {
		for _, s := range stage.Stories {
			line := stage.Name
			if stage.Other {
				line += " other"
			}
			line += fmt.Sprintf(": %s (%s)", s.ID, s.Name)
			if s.Criteria.Total > 0 {
				line += fmt.Sprintf(" %d/%d", s.Criteria.Done, s.Criteria.Total)
			}
			for _, more := range [][2]string{
				{" blocked: ", s.Blocked},
				{" after ", strings.Join(s.DependsOn, ", ")},
				{" waits for ", strings.Join(s.WaitsFor, ", ")},
			} {
				if more[1] != "" {
					line += more[0] + more[1]
				}
			}
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}
