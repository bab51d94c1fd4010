package main

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"switchyard/internal/store/sqlite"
)

// eventSteps are how many events the database has at each step.
var eventSteps = []int{10_000, 100_000, 1_000_000, 10_000_000}

// growEvents measures a gateway over databases with more and more events.
func growEvents(binary string, most int) (*growth, error) {
	g := newGrowth("From 10,000 events to 10,000,000", "events")
	for step, count := range eventSteps {
		if count > most {
			break
		}
		dir, err := eventStore(eventSteps, step)
		if err != nil {
			return nil, err
		}
		g.step(count)
		if err := measureEvents(binary, dir, count, g); err != nil {
			return nil, fmt.Errorf("%d events: %w", count, err)
		}
	}
	return g, nil
}

func measureEvents(binary, dir string, count int, g *growth) error {
	projects, err := startProjects(eventProjects)
	if err != nil {
		return err
	}
	defer projects.stop()
	info, err := os.Stat(filepath.Join(dir, sqlite.FileName))
	if err != nil {
		return err
	}
	g.add("database, bytes an event", float64(info.Size())/float64(count), "", "≤ 400")
	gateway, took, err := start(binary, "gateway", "--data", dir, "--keep-events", "0")
	if err != nil {
		return err
	}
	defer gateway.stop()
	g.add("start to first answer", float64(took.Microseconds())/1000, "ms", "≤ 10 ms")
	if err := register(gateway, projects); err != nil {
		return err
	}
	began := time.Now()
	if _, _, err := get(gateway.url() + "/projects/project-0001"); err != nil {
		return err
	}
	g.add("first look at a project and its charts", float64(time.Since(began).Microseconds())/1000, "ms", "≤ 50 ms")
	for _, c := range []struct {
		what, path string
		goal       float64
	}{
		{"overview", "/", 50},
		{"events, newest page", "/events", 50},
		{"by project", "/events?project=project-0007", 50},
		{"by type", "/events?type=story_blocked", 50},
		{"by project and type", "/events?project=project-0007&type=story_blocked", 50},
		{"by project and type, none matches", "/events?project=project-0007&type=merge_failure", 50},
		{"text that many events have", "/events?q=" + url.QueryEscape("invoice"), 100},
		{"text that one story has", "/events?q=" + url.QueryEscape("customer 17"), 100},
		{"text that nothing has", "/events?q=" + url.QueryEscape("no such words"), 100},
		{"text, project and type", "/events?project=project-0007&type=story_blocked&q=refund", 100},
		{"API, from the middle", fmt.Sprintf("/api/gateway/events?limit=200&after=%d", count/2), 50},
		{"API, backwards from the middle, by project", fmt.Sprintf("/api/gateway/events?limit=200&project=project-0007&before=%d", count/2), 50},
		{"search for a story", "/api/gateway/search?q=invoice", 100},
		{"attention", "/api/gateway/attention", 50},
	} {
		ms, _, err := answerTime(gateway.url()+c.path, 0)
		if err != nil {
			return err
		}
		g.add(c.what, ms, "ms", fmt.Sprintf("≤ %.0f ms", c.goal))
	}
	g.add("memory", memory(gateway.pid()), "MiB", "")
	return nil
}
