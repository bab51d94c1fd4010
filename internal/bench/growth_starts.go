package main

import (
	"bytes"
	"time"
)

// measureStarts measures the first answers after a start, several times, and returns the last gateway that it started.
func measureStarts(binary, dir string, g *growth) (gateway *process, err error) {
	firsts := []struct{ what, path string }{
		{"first look at a project and its charts", "/projects/project-0001"},
		{"then first look at all projects and their charts", "/"},
	}
	var starts []float64
	took, charts := make([][]float64, len(firsts)), 0
	for range repeats {
		if gateway != nil {
			gateway.stop()
		}
		var start time.Duration
		if gateway, start, err = startEvents(binary, dir); err != nil {
			return nil, err
		}
		starts = append(starts, float64(start.Microseconds())/1000)
		for i, first := range firsts {
			began := time.Now()
			page, _, err := get(gateway.url() + first.path)
			if err != nil {
				gateway.stop()
				return nil, err
			}
			took[i] = append(took[i], float64(time.Since(began).Microseconds())/1000)
			if i == 0 && bytes.Contains(page, []byte(`id="finished-title"`)) {
				charts++
			}
		}
		time.Sleep(time.Second) // so that the start is over before the stop
	}
	g.add("start to first answer", median(starts), "ms", "≤ 20 ms")
	for i, first := range firsts {
		g.add(first.what, median(took[i]), "ms", "≤ 150 ms")
	}
	g.add("charts in the first look at a project", 100*float64(charts)/repeats, "%", "100 %")
	return gateway, nil
}
