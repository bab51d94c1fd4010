package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// measureFeed measures a project server that holds 500 events.
func measureFeed(binary string) ([]row, error) {
	work := filepath.Join(workDir, "board")
	for _, stage := range []string{"1_backlog", "2_current"} {
		if err := os.MkdirAll(filepath.Join(work, stage), 0o755); err != nil {
			return nil, err
		}
	}
	for i := range 510 {
		text := fmt.Sprintf("---\nname: A story of the usual length, number %d\n---\n", i)
		if err := os.WriteFile(filepath.Join(work, "1_backlog", fmt.Sprintf("%d_story_measure.md", i)), []byte(text),
			0o600); err != nil {
			return nil, err
		}
	}
	server, _, err := start(binary, "project", "--name", "bench", "--work", work)
	if err != nil {
		return nil, err
	}
	defer server.stop()
	for i := range 510 {
		name := fmt.Sprintf("%d_story_measure.md", i)
		if err := os.Rename(filepath.Join(work, "1_backlog", name), filepath.Join(work, "2_current", name)); err != nil {
			return nil, err
		}
	}
	var events []struct {
		TimestampMS int64 `json:"timestamp_ms"`
	}
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		body, headers, err := get(server.url() + "/api/events")
		if err != nil {
			return nil, err
		}
		if headers.Get("Feed-Sequence") == "510" {
			if err := json.Unmarshal(body, &events); err != nil {
				return nil, err
			}
			break
		}
		if time.Since(began) > 10*time.Second {
			return nil, fmt.Errorf("the moves were not recorded: sequence %s", headers.Get("Feed-Sequence"))
		}
	}
	since := func(i int) string { return fmt.Sprintf("/api/events?since=%d", events[i].TimestampMS) }
	return compare(server, []compared{
		{"feed of 500 events", "/api/events?since=0", 0.9, 0},
		{"feed, ten events", since(489), 0, 1.5},
		{"feed, nothing new", since(499), 0, 1.5},
	})
}
