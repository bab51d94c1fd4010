package domain_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"switchyard/internal/domain"
)

var chartsNow = time.Date(2026, 10, 31, 15, 0, 0, 0, time.UTC)

func hoursAgo(hours int) time.Time { return chartsNow.Add(-time.Duration(hours) * time.Hour) }

func TestChartsMeasureTheTimeFromTheBeginningOfWorkUntilDone(t *testing.T) {
	f := visitsOf(t,
		"1 1_backlog 2_current", hoursAgo(500), "1 2_current 3_qa", hoursAgo(400), "1 3_qa 5_done", hoursAgo(20), // 480
		"2 1_backlog 2_current", hoursAgo(30), "2 2_current 3_qa", hoursAgo(28), "2 3_qa 2_current", hoursAgo(27),
		"2 2_current 1_backlog", hoursAgo(26), "2 1_backlog 2_current", hoursAgo(25), "2 2_current 5_done", hoursAgo(20), // 10: it had begun
		"3 1_backlog 4_merge", hoursAgo(16), "3 4_merge 5_done", hoursAgo(10),
		"3 5_done 2_current", hoursAgo(9), "3 2_current 5_done", hoursAgo(4), // 12: it came back
		"4 2_current 3_qa", hoursAgo(20), "4 3_qa 5_done", hoursAgo(16), // 4: nobody saw it begin, so its first move counts
		"5 1_backlog 5_done", hoursAgo(20), // was never worked on
		"6 1_backlog 2_current", hoursAgo(20*24), "6 2_current 5_done", hoursAgo(19*24), // too long ago
	)
	want := domain.StageTime{Median: 11 * time.Hour, Visits: 4}
	if got := f.Charts(domain.NewWorkflow("", stages(usual)), chartsNow).ToDone; got != want {
		t.Errorf("to done %v, want %v", got, want)
	}
}

func TestChartsOfAllProjectsAreMadeOfTheirStories(t *testing.T) {
	slow := visitsOf(t, "1 1_backlog 2_current", hoursAgo(100), "1 2_current 3_qa", hoursAgo(60), "1 3_qa 5_done", hoursAgo(30)) // 40, 30; 70
	quick := visitsOf(t,
		"1 1_todo 2_qa", hoursAgo(12), "1 2_qa 3_current", hoursAgo(11), "1 3_current 4_done", hoursAgo(9), // 1, 2; 3
		"2 1_todo 2_qa", hoursAgo(8), "2 2_qa 3_current", hoursAgo(5), "2 3_current 4_done", hoursAgo(1), // 3, 4; 7
		"3 1_todo 2_qa", hoursAgo(8), "3 2_qa 3_current", hoursAgo(6), // 2
	)
	sum := domain.SumCharts([]domain.Charts{
		slow.Charts(domain.NewWorkflow("", stages(usual)), chartsNow), {}, quick.Charts(domain.NewWorkflow("", stages("1_todo 2_qa 3_current 4_done")), chartsNow),
	})
	want := []domain.StageTime{ // QA is the first of more stories
		{Stage: "QA", Median: 150 * time.Minute, Visits: 4},
		{Stage: "Current", Median: 4 * time.Hour, Visits: 3},
	}
	if !slices.Equal(sum.Stages, want) || sum.ToDone != (domain.StageTime{Median: 7 * time.Hour, Visits: 3}) {
		t.Errorf("%v, to done %v", sum.Stages, sum.ToDone)
	}
	if finished(sum) != "2026-10-30 1, 2026-10-31 2" {
		t.Errorf("finished %s", finished(sum))
	}
	if none := domain.SumCharts([]domain.Charts{{}, {}}); none.Days != nil || none.Stages != nil || none.ToDone.Visits != 0 {
		t.Errorf("of nothing: %v", none)
	}
}

func TestAStageThatOneProjectMakesUpDoesNotCrowdOutTheOthers(t *testing.T) {
	var transitions []any
	for i := range 20 {
		transitions = append(transitions, fmt.Sprintf("%d 1_backlog 2_current", i), hoursAgo(90), fmt.Sprintf("%d 2_current 3_qa", i), hoursAgo(50))
	}
	usualCharts := visitsOf(t, transitions...).Charts(domain.NewWorkflow("", stages(usual)), chartsNow)
	odd := visitsOf(t,
		"1 0_x 1_a", hoursAgo(9), "1 1_a 2_b", hoursAgo(8), "1 2_b 3_c", hoursAgo(7), "1 3_c 4_d", hoursAgo(6), "1 4_d 5_e", hoursAgo(5), "1 5_e 6_f", hoursAgo(4),
	).Charts(domain.NewWorkflow("", stages("0_x 1_a 2_b 3_c 4_d 5_e 6_f 7_g")), chartsNow)
	got := domain.SumCharts([]domain.Charts{odd, usualCharts}).Stages
	if len(got) != 5 || !slices.Contains(got, domain.StageTime{Stage: "Current", Median: 40 * time.Hour, Visits: 20}) {
		t.Errorf("%v", got)
	}
}
