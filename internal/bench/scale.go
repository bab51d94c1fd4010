package main

import (
	"fmt"
	"slices"
)

// maxGrowth is how much more a project may cost among many than among few and still count as linear: caches of the
// processor hold fewer of them.
const maxGrowth = 2

// measureScale compares what a project costs among 10, 100, 1,000 and 10,000.
func measureScale(string) ([]row, error) {
	figures, err := runBenchmark("./handlers", "Scale", 1)
	if err != nil {
		return nil, err
	}
	var costs []float64 // µs a project
	for _, n := range []int{10, 100, 1000, 10_000} {
		var ns float64
		for _, part := range []string{"registry", "pipeline", "overview"} {
			runs := figures[fmt.Sprintf("%s/%d", part, n)]
			if len(runs) == 0 {
				return nil, fmt.Errorf("no figure for %s at %d", part, n)
			}
			ns += median(runs)
		}
		costs = append(costs, ns/1000/float64(n))
	}
	last := len(costs) - 1
	return []row{{
		"a project's cost (registry as JSON, pipeline, overview) among 10 / 100 / 1,000 / 10,000",
		fmt.Sprintf("%.1f / %.1f / %.1f / %.1f µs", costs[0], costs[1], costs[2], costs[3]),
		fmt.Sprintf("linear: at 10,000 ≤ %d times the least before", maxGrowth), costs[last] <= maxGrowth*slices.Min(costs[:last]),
	}}, nil
}
