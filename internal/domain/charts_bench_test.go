package domain_test

import (
	"fmt"
	"testing"

	"switchyard/internal/domain"
)

// BenchmarkSumCharts adds up the charts of 10,000 projects with 20 finished stories each, as every snapshot does.
func BenchmarkSumCharts(b *testing.B) {
	var transitions []any
	for i := range 20 {
		for step, stage := range []string{"1_backlog 2_current", "2_current 3_qa", "3_qa 4_merge", "4_merge 5_done"} {
			transitions = append(transitions, fmt.Sprint(i, " ", stage), hoursAgo(300-10*i-(i+step*7)%9-step*10))
		}
	}
	charts := make([]domain.Charts, 10_000)
	for i := range charts {
		charts[i] = visitsOf(b, transitions...).Charts(domain.NewWorkflow("", stages(usual)), chartsNow)
	}
	for b.Loop() {
		domain.SumCharts(charts)
	}
}
