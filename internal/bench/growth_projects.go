package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"time"
)

// projectSteps are the numbers of projects that are followed at each step.
var projectSteps = []int{8, 200, 1_000, 10_000}

// feedRound is how long a gateway lets a project server hold an answer: in that time, each silent feed is requested
// once. The requests stay bunched as they were at the start, so that a shorter time might include all of them, or none.
const feedRound = 25 * time.Second

// growProjects measures an otherwise idle gateway that follows more and more projects.
func growProjects(binary string, most int) (*growth, error) {
	g := newGrowth("From 8 projects to 10,000", "projects")
	for _, count := range projectSteps {
		if count > most {
			break
		}
		if limit := descriptors(); limit < count*17/10 {
			fmt.Fprintf(os.Stderr, "%d projects need more than the %d descriptors that a process may have here\n", count, limit)
			break
		}
		g.step(count)
		if err := measureProjects(binary, count, g); err != nil {
			return nil, fmt.Errorf("%d projects: %w", count, err)
		}
	}
	return g, nil
}

func measureProjects(binary string, count int, g *growth) error {
	projects, err := startProjects(count)
	if err != nil {
		return err
	}
	defer projects.stop()
	began := time.Now()
	gateway, err := startGateway(binary, projects, count, false)
	if err != nil {
		return err
	}
	defer gateway.stop()
	g.add("first start: registering all from a file until the first answer", time.Since(began).Seconds(), "s", "≤ 3 s")
	for _, step := range []struct {
		what string
		done *atomic.Int64
	}{
		{"until all are followed", &projects.followed},
		{"until all pipelines were fetched", &projects.shown},
		{"until all histories were read", &projects.read},
	} {
		for step.done.Load() < int64(count) && time.Since(began) < 2*time.Minute {
			time.Sleep(10 * time.Millisecond)
		}
		g.add(step.what, time.Since(began).Seconds(), "s", "")
	}
	time.Sleep(5 * time.Second) // until they are stored
	g.add("idle", cpuShare(gateway, feedRound), "% of a core", "≤ 6 %")
	g.add("memory, idle", memory(gateway.pid()), "MiB", "≤ 600 MiB")

	if err := measureAnswers(gateway, g); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go keepTabs(ctx, gateway.url(), "/", 1)
	time.Sleep(5 * time.Second)
	g.add("one tab at rest", cpuShare(gateway, feedRound), "% of a core", "")
	cancel()

	ctx, cancel = context.WithCancel(context.Background())
	defer cancel()
	failures := make(chan int64, 1)
	go func() { failures <- keepTabs(ctx, gateway.url(), "/", 100) }()
	go pushTen(ctx, projects)
	time.Sleep(5 * time.Second)
	g.add("100 tabs, 10 events/s", cpuShare(gateway, feedRound), "% of a core", "")
	cancel()
	g.add("of their requests failed", float64(<-failures), "", "0")
	g.add("memory after all that", memory(gateway.pid()), "MiB", "")
	return nil
}

// cpuShare returns how much of a core the process uses.
func cpuShare(p *process, over time.Duration) float64 {
	used := cpuTime(p.pid())
	time.Sleep(over)
	return (cpuTime(p.pid()) - used).Seconds() / over.Seconds() * 100
}

// pushTen records 10 events a second, each in a different project.
func pushTen(ctx context.Context, projects *projectServers) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for i := 0; ; i++ {
		select {
		case <-tick.C:
			projects.push(i * 7 % len(projects.servers))
		case <-ctx.Done():
			return
		}
	}
}

// measureAnswers measures pages and documents that show all projects.
func measureAnswers(gateway *process, g *growth) error {
	for _, c := range []struct{ what, path, goal string }{
		{"overview", "/", "≤ 300 ms"},
		{"Projects", "/projects", "≤ 300 ms"},
		{"Agents", "/agents", "≤ 300 ms"},
		{"Events", "/events", "≤ 300 ms"},
		{"one project", "/projects/project-0001", "≤ 300 ms"},
		{"search for a name", "/search?q=project-00", "≤ 300 ms"},
		{"attention", "/api/gateway/attention", "≤ 300 ms"},
		{"fresh pipelines", "/api/gateway/pipeline", ""},
	} {
		took, body, err := answerTime(150*time.Millisecond, gateway.url()+c.path)
		if err != nil {
			return err
		}
		g.add(c.what, took, "ms", c.goal)
		if c.path == "/" {
			g.add("overview, elements", float64(countElements(string(body))), "", "≤ 3,000")
			weight, err := firstPageWeight(gateway)
			if err != nil {
				return err
			}
			g.add("overview on the wire, all its assets included", weight, "kB", "≤ 60 kB")
		}
	}
	_, body, err := answerTime(0, gateway.url()+"/metrics")
	if err != nil {
		return err
	}
	g.add("`/metrics`", float64(len(body))/1000, "kB", "≤ 100 kB")
	return nil
}

// repeats is the number of answers of which a time is the median.
const repeats = 5

// answerTime requests the addresses in turn, with a pause before each, and returns the median time of an answer in
// milliseconds, and the last answer.
func answerTime(pause time.Duration, urls ...string) (ms float64, body []byte, err error) {
	var times []float64
	for n := range repeats {
		time.Sleep(pause)
		began := time.Now()
		if body, _, err = get(urls[n%len(urls)]); err != nil {
			return 0, nil, err
		}
		times = append(times, float64(time.Since(began).Microseconds())/1000)
	}
	slices.Sort(times)
	return times[len(times)/2], body, nil
}
