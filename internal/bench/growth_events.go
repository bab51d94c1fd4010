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

// eventSteps are the numbers of events in the database at each step.
var eventSteps = []int{10_000, 100_000, 1_000_000, 10_000_000}

// growEvents measures a gateway on databases with more and more events.
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
	if err := warmUp(binary, dir, projects); err != nil {
		return err
	}
	if dir, err = copyStore(dir); err != nil { // the measurements add events
		return err
	}
	defer os.RemoveAll(dir)
	info, err := os.Stat(filepath.Join(dir, sqlite.FileName))
	if err != nil {
		return err
	}
	g.add("database, bytes an event", float64(info.Size())/float64(count), "", "≤ 600")
	gateway, err := measureStarts(binary, dir, g)
	if err != nil {
		return err
	}
	defer gateway.stop()
	some, err := someStories(gateway, count/2)
	if err != nil {
		return err
	}
	var names []string
	for _, story := range some {
		names = append(names, url.QueryEscape(story.Name))
	}
	numbers := []string{"0007", "0023", "0042", "0101", "0193"}
	for _, c := range []struct {
		what string
		goal float64
		path string
		with []string // appended in turn, since answers are cached for a while
	}{
		{"overview", 100, "/", nil},
		{"events, newest page", 100, "/events", nil},
		{"by project", 100, "/events?project=project-", numbers},
		{"by type", 100, "/events?type=", []string{"story_blocked", "stage_transition"}},
		{"by project and type", 100, "/events?type=story_blocked&project=project-", numbers},
		{"by project and type, none matches", 100, "/events?type=merge_failure&project=project-", numbers},
		{"text that many events have", 100, "/events?q=", eventWords[6 : 6+repeats]},
		{"text that one story has", 100, "/events?q=", names},
		{"text that all events have", 100, "/events?q=", []string{"story", "_story", "story_", "for", "tory"}},
		{"text of two letters", 100, "/events?q=", []string{"pa", "in", "re", "cu", "se"}},
		{"text that nothing has", 100, "/events?q=no+such+words+", numbers},
		{"text, project and type", 100, "/events?type=story_blocked&q=refund&project=project-", numbers},
		{"API, from the middle", 100, fmt.Sprintf("/api/gateway/events?limit=200&after=%d", count/2), nil},
		{
			"API, backwards from the middle, by project", 100,
			fmt.Sprintf("/api/gateway/events?limit=200&before=%d&project=project-", count/2), numbers,
		},
		{"search for stories, many match", 100, "/api/gateway/search?q=", eventWords[6 : 6+repeats]},
		{"search for a story", 100, "/api/gateway/search?q=", names},
		{"a story's history", 100, "/projects/" + some[0].Project + "/stories/" + some[0].ID, nil},
		{"attention", 100, "/api/gateway/attention", nil},
	} {
		var paths []string
		for _, end := range c.with {
			paths = append(paths, gateway.url()+c.path+end)
		}
		if paths == nil {
			paths = []string{gateway.url() + c.path}
		}
		ms, _, err := answerTime(0, paths...)
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

// copyStore copies a data directory for the duration of the run.
func copyStore(dir string) (string, error) {
	copied, err := os.MkdirTemp(workDir, "events-")
	if err != nil {
		return "", err
	}
	return copied, copyFile(filepath.Join(dir, sqlite.FileName), filepath.Join(copied, sqlite.FileName))
}

func startEvents(binary, dir string) (*process, time.Duration, error) {
	return start(binary, "gateway", "--data", dir, "--keep-events", "0")
}

// warmUpTime is how long a gateway may take to account for all events.
const warmUpTime = 5 * time.Minute

// warmUp runs a gateway until it follows all projects and has shown them, then stops it, so that a later start is
// measured.
func warmUp(binary, dir string, projects *projectServers) error {
	gateway, _, err := startEvents(binary, dir)
	if err != nil {
		return err
	}
	defer gateway.stop()
	if err := register(gateway, projects); err != nil {
		return err
	}
	for began, quiet := time.Now(), 0; quiet < 3 && time.Since(began) < warmUpTime; {
		if _, _, err := get(gateway.url() + "/"); err != nil {
			return err
		}
		if quiet++; cpuShare(gateway, time.Second) > 5 {
			quiet = 0
		}
	}
	return nil
}

// story is a story in the stream.
type story struct{ Project, ID, Name string }

// someStories returns stories of events before the one with this id.
func someStories(gateway *process, before int) ([]story, error) {
	body, _, err := get(fmt.Sprintf("%s/api/gateway/events?limit=%d&type=stage_transition&before=%d", gateway.url(),
		20*repeats, before))
	if err != nil {
		return nil, err
	}
	var page struct {
		Events []struct {
			Project string `json:"project"`
			ID      string `json:"story_id"`
			Name    string `json:"story_name"`
		} `json:"events"`
	}
	if err := json.Unmarshal(body, &page); err != nil || len(page.Events) < 20*repeats {
		return nil, fmt.Errorf("too few events before %d: %v, %.200s", before, err, body)
	}
	var stories []story
	for n := 0; n < len(page.Events); n += 20 {
		stories = append(stories, story(page.Events[n]))
	}
	return stories, nil
}

// appendEvents has the gateway store 10,000 new events of 100 projects and returns the CPU time for each, in µs.
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
