package domain_test

import (
	"fmt"
	"testing"
	"time"

	"switchyard/internal/domain"
)

func TestWorkIsWhatLiesBetweenBacklogAndDone(t *testing.T) {
	for _, test := range []struct {
		stages   []string
		from, to int
	}{
		{[]string{"1_backlog", "2_current", "3_qa", "4_merge", "5_done", "6_archived"}, 1, 4},
		{[]string{"1_todo", "2_doing", "3_shipped"}, 1, 2},
		{[]string{"1_todo", "2_done"}, 1, 1},
		{[]string{"5_done"}, 0, 0},
		{[]string{"1_only"}, 0, 0},
		{nil, 0, 0},
	} {
		var stages []domain.Stage
		for _, name := range test.stages {
			stages = append(stages, domain.Stage{Name: name})
		}
		if from, to := domain.WorkStages(stages); from != test.from || to != test.to {
			t.Errorf("%v: %d to %d, want %d to %d", test.stages, from, to, test.from, test.to)
		}
	}
}

func TestOnlyStagesFromDoneOnAreClosed(t *testing.T) {
	for _, test := range []struct {
		stages []string
		open   int
	}{
		{[]string{"1_backlog", "2_current", "3_qa", "4_merge", "5_done", "6_archived"}, 4},
		{[]string{"1_todo", "2_doing", "3_shipped"}, 2},
		{[]string{"1_todo", "6_done", "7_live", "8_archived"}, 1},
		{[]string{"1_todo", "2_doing"}, 2},
		{[]string{"2_current"}, 1},
		{[]string{"5_done"}, 0},
		{nil, 0},
	} {
		var stages []domain.Stage
		for _, name := range test.stages {
			stages = append(stages, domain.Stage{Name: name})
		}
		if open := domain.OpenStages(stages); open != test.open {
			t.Errorf("%v: %d open, want %d", test.stages, open, test.open)
		}
	}
}

// TestWorkThatConflictsOrIsLeftIsAnAlertAfterAWhile: of a story in work that conflicts, and of one that is done and not
// merged, beside what else is wrong with it.
func TestWorkThatConflictsOrIsLeftIsAnAlertAfterAWhile(t *testing.T) {
	now := time.UnixMilli(1_000_000_000_000)
	ago := func(minutes int) time.Time { return now.Add(-time.Duration(minutes) * time.Minute) }
	item := func(id string, since, clashed time.Time) domain.Item {
		return domain.Item{StoryID: id, Since: since, Work: &domain.ItemWork{
			Clash: &domain.Clash{Place: "b", Count: 1, Since: clashed}, Unmerged: &domain.UnmergedPlace{Place: "b", Ahead: 1},
		}}
	}
	p := domain.ProjectPipeline{Project: "alpha", Stages: []domain.Stage{
		{Name: "1_backlog", Items: []domain.Item{item("idea", ago(90), ago(90))}},
		{Name: "2_current", Items: []domain.Item{item("long", ago(90), ago(11)), item("short", ago(90), ago(8)), {StoryID: "alone", Since: ago(90)}}},
		{Name: "3_done", Items: []domain.Item{item("left", ago(61), ago(90)), item("new", ago(57), ago(90))}},
		{Name: "4_archived", Items: []domain.Item{item("gone", ago(90), ago(90))}},
	}}
	p.Stages[1].Items[0].Blocked = "a key"
	found, until := domain.FindAlerts(&p, now)
	all := domain.NewAlerts(found)
	got := ""
	for _, a := range all.Items {
		got += fmt.Sprintf("%s %s %v\n", a.Kind, a.Story.StoryID, now.Sub(a.Since).Minutes())
	}
	if want := "blocked long 90\nconflicts long 11\nunmerged left 61\n"; got != want || !until.Equal(ago(-2)) {
		t.Errorf("until %v:\n%swant\n%s", until, got, want)
	}
	if l := all.Overdue["alpha"]; l.Of("long") != domain.AlertConflicts || l.Of("left") != domain.AlertUnmerged || l.Of("new") != "" || l.Base != "the base" {
		t.Errorf("%+v", l)
	}
}

func TestWhatHasStoppedIsBeforeWhatIsSlow(t *testing.T) {
	now := time.UnixMilli(1_000_000_000_000)
	hours := func(n int) time.Time { return now.Add(-time.Duration(n) * time.Hour) }
	reason := "waiting for a key"
	pipelines := []domain.ProjectPipeline{
		{Project: "alpha", Reachable: true, Stages: []domain.Stage{
			{Name: "1_backlog", Items: []domain.Item{{StoryID: "old_idea", Since: hours(500)}}},
			{Name: "2_current", Items: []domain.Item{
				{StoryID: "slow", Since: hours(25)},
				{StoryID: "new", Since: hours(23).Add(-time.Minute)},
				{StoryID: "blocked", Since: hours(2), Blocked: reason, MergeFailure: reason},
				{StoryID: "blocked_longer", Since: hours(3), Blocked: reason},
			}},
			{Name: "3_merge", Items: []domain.Item{{StoryID: "conflict", Since: hours(50), MergeFailure: reason}}},
			{Name: "4_done", Items: []domain.Item{{StoryID: "done", Since: hours(50), Blocked: reason}}},
		}},
	}
	found, until := domain.FindAlerts(&pipelines[0], now)
	if tomorrow := hours(-1).Add(-time.Minute); !until.Equal(tomorrow) {
		t.Errorf("holds until %v, but a story is stuck from %v on", until, tomorrow)
	}
	found = append(found, domain.Alert{Kind: domain.AlertUnreachable, Project: "beta", Reason: "connection refused"})
	sorted := domain.NewAlerts(found).Items
	var got []string
	for _, a := range sorted {
		story := "-"
		if a.Story != nil {
			story = a.Story.StoryID
		}
		got = append(got, fmt.Sprintf("%s %s %s %q", a.Kind, a.Project, story, a.Reason))
	}
	want := []string{
		`unreachable beta - "connection refused"`,
		`blocked alpha blocked_longer "waiting for a key"`,
		`blocked alpha blocked "waiting for a key"`,
		`merge_failed alpha conflict "waiting for a key"`,
		`stuck alpha slow ""`,
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}
