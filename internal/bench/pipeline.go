package main

import (
	"fmt"
	"slices"
	"time"
)

// measurePipeline requests fresh pipelines of 10, 100 and 1,000 projects, 5 % of them dead and 2 % hanging.
func measurePipeline(binary string) ([]row, error) {
	var table []row
	for _, c := range []struct {
		projects int
		goal     float64
	}{{10, 60}, {100, 60}, {1000, 60}} {
		projects, err := startProjects(c.projects)
		if err != nil {
			return nil, err
		}
		gateway, err := startGateway(binary, projects, c.projects, true)
		if err != nil {
			return nil, err
		}
		var times []float64
		var used time.Duration
		for i := range 30 {
			if i == 10 { // the first ones open connections and find out which projects are dead
				used = cpuTime(gateway.pid())
			}
			time.Sleep(150 * time.Millisecond) // longer than the 100 ms for which an answer counts as fresh
			began := time.Now()
			if _, _, err := get(gateway.url() + "/api/gateway/pipeline"); err != nil {
				return nil, err
			}
			if i >= 10 {
				times = append(times, float64(time.Since(began).Microseconds())/1000)
			}
		}
		cpu := float64((cpuTime(gateway.pid()) - used).Microseconds()) / 1000 / float64(len(times))
		gateway.stop()
		projects.stop()
		middle, worst := median(times), slices.Max(times)
		table = append(table, row{
			fmt.Sprintf("fresh pipeline of %d projects", c.projects),
			fmt.Sprintf("median %.1f ms, worst %.1f ms, %.1f ms of CPU", middle, worst, cpu),
			fmt.Sprintf("≤ %.0f ms, never over 260 ms", c.goal), middle <= c.goal && worst <= 260,
		})
	}
	return table, nil
}
