package views_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"switchyard/internal/domain"
	"switchyard/views"
)

// TestABoardFoldsNoTroubleAway: of a stage with many stories, those that need somebody and those in work are shown first.
func TestABoardFoldsNoTroubleAway(t *testing.T) {
	current := domain.Stage{Name: "2_current"}
	for i := range 100 {
		current.Items = append(current.Items, domain.Item{StoryID: fmt.Sprintf("%d_story", 100+i), StoryName: fmt.Sprintf("Story %d", 100+i), Since: minutesAgo(9)})
	}
	current.Items[97].Blocked = "needs a key"
	p := domain.ProjectPipeline{Project: "alpha", Reachable: true, Stages: []domain.Stage{{Name: "1_backlog"}, current, {Name: "5_done"}}}
	var b bytes.Buffer
	props := views.ProjectProps{
		Project: domain.Project{Name: "alpha"}, Pipeline: p, Now: now,
		Overdue: domain.OverdueOf("alpha", []domain.Alert{{Kind: domain.AlertStuck, Project: "alpha", Story: &domain.Item{StoryID: "198_story"}}}),
		Agents:  []domain.RegisteredAgent{{Agent: domain.Agent{Label: "builder", Project: "alpha", State: domain.AgentRunning, Detail: "199_story\nstep 1"}}},
		Owners:  domain.NewOwners(nil, []domain.Agent{{Label: "builder", Project: "alpha", Detail: "199_story\nstep 1"}}),
	}
	if err := views.ProjectPart(props).Content.Render(context.Background(), &b); err != nil {
		t.Fatal(err)
	}
	shown, _, _ := strings.Cut(b.String(), "<details")
	at := func(id string) int { return strings.Index(shown, `stories/`+id) }
	if !(0 < at("197_story") && at("197_story") < at("198_story") && at("198_story") < at("199_story") && at("199_story") < at("100_story")) {
		t.Errorf("folded away, or not in order: %s", shown)
	}
}

// TestABoardShowsFirstWhatWasDoneLast: older stories are folded.
func TestABoardShowsFirstWhatWasDoneLast(t *testing.T) {
	done := domain.Stage{Name: "5_done"}
	for i := range 9 {
		done.Items = append(done.Items, domain.Item{StoryID: fmt.Sprintf("%d_story", i), StoryName: fmt.Sprintf("Story %d", i), Since: minutesAgo(100 - i)})
	}
	p := domain.ProjectPipeline{Project: "alpha", Reachable: true, Stages: []domain.Stage{{Name: "1_backlog"}, {Name: "2_current"}, done}}
	var b bytes.Buffer
	if err := views.ProjectPart(views.ProjectProps{Project: domain.Project{Name: "alpha"}, Pipeline: p, Now: now}).Content.Render(context.Background(), &b); err != nil {
		t.Fatal(err)
	}
	shown, _, _ := strings.Cut(b.String(), "<details")
	if !strings.Contains(shown, "8_story") || strings.Contains(shown, "0_story") {
		t.Errorf("not the newest are shown: %s", shown)
	}
}

// TestABoardSaysWhatItDoesNotShow: subtasks, and a past that is still being read.
func TestABoardSaysWhatItDoesNotShow(t *testing.T) {
	items := []domain.Item{
		{StoryID: "TASK-1", Criteria: &domain.Criteria{Done: 1, Total: 3}}, {StoryID: "TASK-1.02"}, {StoryID: "TASK-2"},
	}
	branch, unread := domain.BoardPlace{Branch: "main"}, "read from git"
	for _, c := range []struct {
		layout, filter, want string
		known                string
		past                 domain.HistoryProgress
	}{
		{domain.LayoutBacklog, "", "2 stories with 1 subtask", "", domain.HistoryProgress{}},
		{domain.LayoutBacklog, "", "3,400 of 5,000 commits read from git", "", domain.HistoryProgress{Read: 3400, Of: 5000}},
		{domain.LayoutBacklog, "-1", "2 of 3 stories", "x", domain.HistoryProgress{Read: 1, Of: 2}},
		{domain.LayoutTaskMaster, "", "3 stories with 3 subtasks", "x", domain.HistoryProgress{}},
		{domain.LayoutBMAD, "", "3 stories", "", domain.HistoryProgress{}},
	} {
		branch.Layout, branch.Past = c.layout, c.past
		var b bytes.Buffer
		err := views.ProjectPart(views.ProjectProps{
			Pipeline: domain.ProjectPipeline{Reachable: true, Board: branch, Stages: []domain.Stage{{Name: "1_to_do", Items: items}}},
			Charts:   domain.Charts{Days: days(0, 1), Past: domain.Past{ID: c.known}}, Filter: c.filter, Now: now,
		}).Content.Render(context.Background(), &b)
		if err != nil || !strings.Contains(b.String(), ">"+c.want+"<") || strings.Contains(b.String(), unread) != (c.known == "") {
			t.Errorf("%+v: %v %s", c, err, b.String())
		}
	}
}
