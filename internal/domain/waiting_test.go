package domain_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"switchyard/internal/domain"
)

// TestStoriesWaitByMultiplesOfWhatIsUsual: across projects; only stages of work count, and a story whose age is unknown
// is left out.
func TestStoriesWaitByMultiplesOfWhatIsUsual(t *testing.T) {
	now := time.UnixMilli(1_000_000_000_000)
	stage := func(name string, hours ...int) domain.Stage {
		s := domain.Stage{Name: name}
		for _, h := range hours {
			s.Items = append(s.Items, domain.Item{StoryID: fmt.Sprintf("%s %d h", name, h), Since: now.Add(-time.Duration(h) * time.Hour)})
		}
		return s
	}
	unknown := domain.Stage{Name: "3_qa", Items: []domain.Item{{StoryID: "unknown", Since: time.UnixMilli(0)}}}
	pipelines := []domain.ProjectPipeline{
		{Project: "alpha", Stages: []domain.Stage{stage("1_backlog", 900), stage("2_current", 10, 30), stage("3_qa", 30), stage("4_done", 900)}, Limits: []time.Duration{5 * time.Hour, 60 * time.Hour}},
		{Project: "beta", Stages: []domain.Stage{stage("1_backlog"), stage("2_build", 48), unknown, stage("9_done")}}, // no limits are known
	}
	var got []string
	for _, w := range domain.WaitingLongest(pipelines, now) {
		got = append(got, fmt.Sprintf("%s %s %.1f", w.Project, w.Item.StoryID, w.Times()))
	}
	want := []string{"alpha 2_current 30 h 6.0", "alpha 2_current 10 h 2.0", "beta 2_build 48 h 2.0", "alpha 3_qa 30 h 0.5"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
