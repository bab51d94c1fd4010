package main

import (
	"encoding/json"
	"errors"
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
	if err := settle(binary, dir, projects); err != nil {
		return err
	}
	gateway, took, err := startEvents(binary, dir)
	if err != nil {
		return err
	}
	defer gateway.stop()
	g.add("start to first answer", float64(took.Microseconds())/1000, "ms", "≤ 10 ms")
	for _, c := range []struct{ what, path string }{
		{"first look at a project and its charts", "/projects/project-0001"}, {"then first look at all projects and their charts", "/"},
	} {
		began := time.Now()
		if _, _, err := get(gateway.url() + c.path); err != nil {
			return err
		}
		g.add(c.what, float64(time.Since(began).Microseconds())/1000, "ms", "≤ 50 ms")
	}
	story, err := someStory(gateway, count/2)
	if err != nil {
		return err
	}
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
		{"text that one story has", "/events?q=" + url.QueryEscape(story.Name), 100},
		{"text that all events have", "/events?q=story", 100},
		{"text of two letters", "/events?q=pa", 100},
		{"text that nothing has", "/events?q=" + url.QueryEscape("no such words"), 100},
		{"text, project and type", "/events?project=project-0007&type=story_blocked&q=refund", 100},
		{"API, from the middle", fmt.Sprintf("/api/gateway/events?limit=200&after=%d", count/2), 50},
		{"API, backwards from the middle, by project", fmt.Sprintf("/api/gateway/events?limit=200&project=project-0007&before=%d", count/2), 50},
		{"search for stories, many match", "/api/gateway/search?q=invoice", 100},
		{"search for a story", "/api/gateway/search?q=" + url.QueryEscape(story.Name), 100},
		{"a story's history", "/projects/" + story.Project + "/stories/" + story.ID, 50},
		{"attention", "/api/gateway/attention", 50},
	} {
		ms, _, err := answerTime(gateway.url()+c.path, 0)
		if err != nil {
			return err
		}
		g.add(c.what, ms, "ms", fmt.Sprintf("≤ %.0f ms", c.goal))
	}
	g.add("memory", memory(gateway.pid()), "MiB", "")
	used, err := appendEvents(gateway, projects)
	if err != nil {
		return err
	}
	g.add("storing an event", used, "µs of CPU", "")
	return nil
}

func startEvents(binary, dir string) (*process, time.Duration, error) {
	return start(binary, "gateway", "--data", dir, "--keep-events", "0")
}

// settleTime is how long a gateway may take to know what all stories have done.
const settleTime = 5 * time.Minute

// settle runs a gateway until it follows all projects and has shown them, and stops it: what is measured is a later start.
func settle(binary, dir string, projects *projectServers) error {
	gateway, _, err := startEvents(binary, dir)
	if err != nil {
		return err
	}
	defer gateway.stop()
	if err := register(gateway, projects); err != nil {
		return err
	}
	for began, quiet := time.Now(), 0; quiet < 3 && time.Since(began) < settleTime; {
		if _, _, err := get(gateway.url() + "/"); err != nil {
			return err
		}
		if quiet++; cpuShare(gateway, time.Second) > 5 {
			quiet = 0
		}
	}
	return nil
}

// story is one that the stream has.
type story struct{ Project, ID, Name string }

// someStory returns the story of an event before the one with this id.
func someStory(gateway *process, before int) (story, error) {
	body, _, err := get(fmt.Sprintf("%s/api/gateway/events?limit=1&type=stage_transition&before=%d", gateway.url(), before))
	if err != nil {
		return story{}, err
	}
	var page struct {
		Events []struct {
			Project string `json:"project"`
			ID      string `json:"story_id"`
			Name    string `json:"story_name"`
		} `json:"events"`
	}
	if err := json.Unmarshal(body, &page); err != nil || len(page.Events) == 0 {
		return story{}, fmt.Errorf("no event before %d: %v, %s", before, err, body)
	}
	return story(page.Events[0]), nil
}

// appendEvents has the gateway store 10,000 new events of 100 projects and returns how much processor time each took, in µs.
func appendEvents(gateway *process, projects *projectServers) (float64, error) {
	const of, each = 100, 100
	newest := func() (id int64, err error) {
		body, _, err := get(gateway.url() + "/api/gateway/events?limit=1&before=9007199254740991")
		if err != nil {
			return 0, err
		}
		var page struct {
			Events []struct{ ID int64 } `json:"events"`
		}
		if err := json.Unmarshal(body, &page); err != nil || len(page.Events) == 0 {
			return 0, fmt.Errorf("no events: %v", err)
		}
		return page.Events[0].ID, nil
	}
	before, err := newest()
	if err != nil {
		return 0, err
	}
	used := cpuTime(gateway.pid())
	for range each {
		for n := range of {
			projects.push(n)
		}
		time.Sleep(10 * time.Millisecond)
	}
	for began := time.Now(); time.Since(began) < time.Minute; time.Sleep(20 * time.Millisecond) {
		now, err := newest()
		if err != nil {
			return 0, err
		}
		if now-before >= of*each {
			return float64((cpuTime(gateway.pid()) - used).Microseconds()) / (of * each), nil
		}
	}
	return 0, errors.New("events were not stored within a minute")
}
