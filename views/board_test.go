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
