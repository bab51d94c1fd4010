package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// rounds is the number of adjacent pairs of which a ratio is the median; each half of a pair lasts roundTime.
const (
	rounds    = 9
	roundTime = 700 * time.Millisecond
)

// compared is a path whose answers are compared with the same bytes from nginx.
type compared struct {
	what string
	path string
	goal float64 // 0 for none
}

// compare measures ours against nginx pair by pair. Without nginx only the CPU time per request is measured.
func compare(ours, nginx *process, c compared, nginxPath string) (row, error) {
	var ratios, cpu []float64
	for range rounds {
		rate, each, err := loadOf(ours, c.path)
		if err != nil {
			return row{}, err
		}
		cpu = append(cpu, each)
		if nginx == nil {
			continue
		}
		theirs, err := load(nginx.address, nginxPath, roundTime)
		if err != nil {
			return row{}, fmt.Errorf("nginx: %w", err)
		}
		ratios = append(ratios, rate/theirs)
	}
	r := row{what: c.what}
	if nginx == nil { // nothing to compare with
		r.measured = fmt.Sprintf("no nginx here; %.0f µs of CPU a request", median(cpu))
		return r, nil
	}
	if c.goal > 0 {
		r.goal = fmt.Sprintf("≥ %.2f of nginx", c.goal)
	}
	r.measured = fmt.Sprintf("%.2f of nginx, %.0f µs of CPU a request", median(ratios), median(cpu))
	r.met = median(ratios) >= c.goal
	return r, nil
}

// loadOf returns how many answers a second a process gives, and its CPU time for each, in µs.
func loadOf(p *process, path string) (rate, each float64, err error) {
	used := cpuTime(p.pid())
	rate, err = load(p.address, path, roundTime)
	return rate, float64((cpuTime(p.pid()) - used).Microseconds()) / (rate * roundTime.Seconds()), err
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

// serveSame has nginx serve the same answer for each path, and measures each pair.
func serveSame(ours *process, cases []compared) ([]row, error) {
	directory := filepath.Join(workDir, "www")
	if err := os.MkdirAll(directory, 0o755); err != nil {
		return nil, err
	}
	if err := os.Chmod(workDir, 0o755); err != nil {
		return nil, err
	}
	nginx, err := startNginx(directory)
	if err != nil {
		return nil, err
	}
	if nginx != nil {
		defer nginx.stop()
	}
	var table []row
	for i, c := range cases {
		name := fmt.Sprintf("/%d.json", i)
		body, _, err := get(ours.url() + c.path)
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(directory+name, body, 0o644); err != nil {
			return nil, err
		}
		r, err := compare(ours, nginx, c, name)
		if err != nil {
			return nil, err
		}
		table = append(table, r)
	}
	return table, nil
}
