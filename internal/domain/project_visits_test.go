package domain_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"switchyard/internal/domain"
)

// stages returns empty stages with these names.
func stages(names string) []domain.Stage {
	var list []domain.Stage
	for _, name := range strings.Fields(names) {
		list = append(list, domain.Stage{Name: name})
	}
	return list
}

const usual = "1_backlog 2_current 3_qa 4_merge 5_done 6_archived"

// TestWhatFinishesAStory: it comes into the done stage from a stage before it. One that goes past is not finished.
func TestWhatFinishesAStory(t *testing.T) {
	for _, c := range []struct {
		stages, from, to string
		want             bool
	}{
		{usual, "4_merge", "5_done", true},
		{usual, "1_backlog", "5_done", true},
		{usual, "3_qa", "6_archived", false},
		{usual, "9_elsewhere", "5_done", true},
		{usual, "3_qa", "4_merge", false},
		{usual, "5_done", "6_archived", false},
		{usual, "6_archived", "5_done", false},
		{usual, "5_done", "2_current", false},
		{usual, "2_current", "9_elsewhere", false},
		{"1_new 2_doing 3_shipped", "2_doing", "3_shipped", true}, // without Done, the last stage
		{"1_new 2_doing 3_shipped", "1_new", "2_doing", false},
		{"", "4_merge", "5_done", false},
	} {
		now := time.Now()
		visits := domain.NewProjectVisits(nil, []domain.VisitEnd{{StoryID: "1", Number: 1, Stage: c.from, Next: c.to, To: now.UnixMilli()}})
		days := visits.Charts(domain.NewWorkflow("", stages(c.stages)), now).Days
		if got := days[len(days)-1].Finished == 1; got != c.want {
			t.Errorf("%s → %s in %q: %t", c.from, c.to, c.stages, got)
		}
	}
}

// visitsOf returns the visits after transitions: "story from to", each followed by its time.
func visitsOf(t testing.TB, transitions ...any) *domain.ProjectVisits {
	t.Helper()
	book := domain.NewVisitBook(nil, nil)
	for i := 0; i < len(transitions); i += 2 {
		words := strings.Fields(transitions[i].(string))
		r, err := domain.ParseRecord(json.RawMessage(fmt.Sprintf(`{"type":"stage_transition","story_id":%q,"from_stage":%q,"to_stage":%q,"timestamp_ms":%d}`,
			words[0], words[1], words[2], transitions[i+1].(time.Time).UnixMilli())))
		if err != nil {
			t.Fatal(err)
		}
		book.Add(domain.Event{Project: "alpha", ReceivedAt: r.At, Record: r})
	}
	changed, _ := book.Changed()
	return domain.NewProjectVisits(nil, nil).With(changed)
}

// finished lists the days with finished stories and their number: "2026-11-21 2".
func finished(c domain.Charts) string {
	var list []string
	for _, d := range c.Days {
		if d.Finished > 0 {
			list = append(list, fmt.Sprint(d.Day.Format(time.DateOnly), " ", d.Finished))
		}
	}
	return strings.Join(list, ", ")
}

func TestChartsCountFinishedStoriesByDay(t *testing.T) {
	zone, err := time.LoadLocation("Europe/Berlin") // summer time ended on 25 October 2026
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 10, 31, 15, 0, 0, 0, zone)
	at := func(day, hour, minute int) time.Time { return time.Date(2026, 10, day, hour, minute, 0, 0, zone) }
	f := visitsOf(t,
		"1 4_merge 5_done", at(17, 23, 59), // the day before the first
		"2 4_merge 5_done", at(18, 0, 0),
		"3 4_merge 5_done", at(25, 0, 30),
		"4 4_merge 5_done", at(25, 23, 59), // a day of 25 hours
		"5 4_merge 5_done", at(26, 0, 0),
		"6 2_current 3_qa", at(31, 10, 0),
		"5 5_done 6_archived", at(31, 11, 0),
		"7 4_merge 5_done", at(31, 12, 0),
		"8 4_merge 5_done", at(31, 16, 0), // by a clock that is fast
	)
	c := f.Charts(domain.NewWorkflow("", stages(usual)), now)
	if got, want := finished(c), "2026-10-18 1, 2026-10-25 2, 2026-10-26 1, 2026-10-31 2"; got != want {
		t.Errorf("finished %s\nwant     %s", got, want)
	}
	if len(c.Days) != domain.ChartDays || !c.Days[13].Day.Equal(at(31, 0, 0)) {
		t.Errorf("days %v", c.Days)
	}
	sum := domain.SumCharts([]domain.Charts{c, {}, c}).Days
	if got := sum[13].Finished; got != 4 || c.Days[13].Finished != 2 {
		t.Errorf("twice the last day is %d, the day itself %d", got, c.Days[13].Finished)
	}
}

func TestChartsMeasureTimeInStage(t *testing.T) {
	now := time.Date(2026, 10, 31, 15, 0, 0, 0, time.UTC)
	ago := func(hours int) time.Time { return now.Add(-time.Duration(hours) * time.Hour) }
	f := visitsOf(t,
		"0 1_backlog 2_current", ago(20*24), "0 2_current 3_qa", ago(19*24), // left too long ago
		"1 1_backlog 2_current", ago(20*24), "1 2_current 3_qa", ago(10), // came before the first day, left after it
		"2 1_backlog 2_current", ago(50), "2 2_current 3_qa", ago(49),
		"3 1_backlog 2_current", ago(40), "3 2_current 3_qa", ago(37), "3 3_qa 2_current", ago(35), "3 2_current 3_qa", ago(30),
		"4 2_current 3_qa", ago(20), "4 3_qa 5_done", ago(16), // came to Current before anybody looked
		"5 1_backlog 2_current", ago(9), "5 3_qa 4_merge", ago(8), // a move is missing
		"6 1_backlog 2_current", ago(5), "6 2_current 3_qa", ago(6), // the clock was set back
	)
	c := f.Charts(domain.NewWorkflow("", stages(usual)), now)
	want := []domain.StageTime{
		{Stage: "2_current", Title: "Current", Median: 4 * time.Hour, Visits: 4}, // 1, 3, 5 and 470 hours
		{Stage: "3_qa", Title: "QA", Median: 3 * time.Hour, Visits: 2},           // 2 and 4
		{Stage: "4_merge", Title: "Merge"},
	}
	if !slices.Equal(c.Stages, want) {
		t.Errorf("%v, want %v", c.Stages, want)
	}
}

func TestWhatAFeedMakesUpIsBounded(t *testing.T) {
	now := time.Now()
	book := domain.NewVisitBook(nil, nil)
	for i := range 30_000 {
		r, err := domain.ParseRecord(fmt.Appendf(nil, `{"type":"stage_transition","story_id":"%d","from_stage":"%d_a","to_stage":"%d_b","timestamp_ms":%d}`,
			i, i%60, i%60, now.UnixMilli()))
		if err != nil {
			t.Fatal(err)
		}
		book.Add(domain.Event{Project: "alpha", ReceivedAt: r.At, Record: r})
	}
	visits, counts := book.Changed()
	stages, open := map[string]bool{}, 0
	for _, v := range visits {
		stages[v.Stage] = true
		if v.To.IsZero() {
			open++
		}
	}
	if len(stages) != 100 || open != 20_000 || counts[0].Open != open || len(counts[0].Stages) != 100 {
		t.Errorf("%d stages and %d open visits, counted %d and %d", len(stages), open, len(counts[0].Stages), counts[0].Open)
	}
	long := domain.Sighting{StoryID: "1", Stage: strings.Repeat("long", 1000)}
	book = domain.NewVisitBook(nil, nil)
	if len(book.Observe([]domain.Observation{{Project: "alpha", Seen: []domain.Sighting{long}, Asked: now, Now: now}})) > 0 {
		t.Error("a stage that cannot be kept is asked for again")
	}
	if visits, _ := book.Changed(); len(visits) > 0 {
		t.Errorf("%+v", visits)
	}
}
