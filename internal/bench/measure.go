package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// rounds is the number of adjacent pairs of which a ratio is the median; each side of one lasts roundTime.
const (
	rounds    = 5
	roundTime = 700 * time.Millisecond
)

// compared is a path of ours against the same bytes from nginx, asked with the same header.
type compared struct {
	what   string
	path   string
	header string
	status int
	goal   float64
}

// compare measures ours against nginx pair by pair. Without nginx only the CPU time per request is told.
func compare(ours, nginx *process, c compared, nginxPath, nginxHeader string) (row, error) {
	nginxStatus := c.status
	if c.status == http.StatusNoContent {
		nginxStatus = http.StatusNotModified
	}
	var ratios, cpu []float64
	for range rounds {
		used := cpuTime(ours.pid())
		rate, err := load(ours.address, c.path, c.header, c.status, roundTime)
		if err != nil {
			return row{}, err
		}
		cpu = append(cpu, float64((cpuTime(ours.pid())-used).Microseconds())/(rate*roundTime.Seconds()))
		if nginx == nil {
			continue
		}
		theirs, err := load(nginx.address, nginxPath, nginxHeader, nginxStatus, roundTime)
		if err != nil {
			return row{}, fmt.Errorf("nginx: %w", err)
		}
		ratios = append(ratios, rate/theirs)
	}
	r := row{what: c.what, goal: fmt.Sprintf("≥ %.2f of nginx", c.goal)}
	if nginx == nil {
		r.measured, r.met = fmt.Sprintf("no nginx here; %.0f µs of CPU a request", median(cpu)), true
		return r, nil
	}
	r.measured = fmt.Sprintf("%.2f of nginx, %.0f µs of CPU a request", median(ratios), median(cpu))
	r.met = median(ratios) >= c.goal
	return r, nil
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

// serveSame makes nginx serve what ours answers at each path, and measures each pair.
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
		name, header := fmt.Sprintf("/%d.json", i), ""
		if c.status == http.StatusOK {
			body, _, err := get(ours.url() + c.path)
			if err != nil {
				return nil, err
			}
			if err := os.WriteFile(directory+name, body, 0o644); err != nil {
				return nil, err
			}
		} else { // unchanged: nginx answers 304 to its own tag
			if err := os.WriteFile(directory+name, []byte("part"), 0o644); err != nil {
				return nil, err
			}
			if nginx != nil {
				_, headers, err := get(nginx.url() + name)
				if err != nil {
					return nil, err
				}
				header = "If-None-Match: " + headers.Get("ETag") + "\r\n"
			}
		}
		r, err := compare(ours, nginx, c, name, header)
		if err != nil {
			return nil, err
		}
		table = append(table, r)
	}
	return table, nil
}

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
		if err := os.WriteFile(filepath.Join(work, "1_backlog", fmt.Sprintf("%d_story_measure.md", i)), []byte(text), 0o600); err != nil {
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
	return serveSame(server, []compared{
		{"feed of 500 events", "/api/events?since=0", "", 200, 0.85},
		{"feed, ten events", since(489), "", 200, 0.90},
		{"feed, nothing new", since(499), "", 200, 0.90},
	})
}

// measureGateway measures a gateway with 50 projects: small JSON, a polled part that did not change, the first page.
func measureGateway(binary string) ([]row, error) {
	projects, err := startFleet(50)
	if err != nil {
		return nil, err
	}
	defer projects.stop()
	gateway, err := startGateway(binary, projects, 50, false)
	if err != nil {
		return nil, err
	}
	defer gateway.stop()
	page, _, err := get(gateway.url() + "/")
	if err != nil {
		return nil, err
	}
	part := regexp.MustCompile(`hx-get="([^"]*[?&](?:amp;)?v=[^"]*)"`).FindSubmatch(page)
	if part == nil {
		return nil, fmt.Errorf("the overview polls no part")
	}
	path := strings.ReplaceAll(string(part[1]), "&amp;", "&")
	table, err := serveSame(gateway, []compared{
		{"small JSON (`/gateway/mode`)", "/gateway/mode", "", 200, 0.90},
		{"registry of 50 (`/api/gateway`)", "/api/gateway", "", 200, 0.90},
		{"polled part, unchanged (204 against nginx's 304)", path, "HX-Request: true\r\n", 204, 0.60},
	})
	if err != nil {
		return nil, err
	}
	weight, err := firstPageWeight(gateway)
	if err != nil {
		return nil, err
	}
	return append(table, row{
		"first page of 50 projects on the wire, all its assets included",
		fmt.Sprintf("%.1f kB", weight), "≤ 45 kB", weight <= 45,
	}), nil
}

// firstPageWeight returns the compressed size of the overview and everything that it loads, in kB.
func firstPageWeight(gateway *process) (float64, error) {
	page, _, err := get(gateway.url() + "/")
	if err != nil {
		return 0, err
	}
	paths := []string{"/"}
	for _, asset := range regexp.MustCompile(`(?:src|href)="(/static/[^"]+)"`).FindAllSubmatch(page, -1) {
		paths = append(paths, string(asset[1]))
	}
	slices.Sort(paths)
	total := 0
	for _, path := range slices.Compact(paths) {
		body, _, err := get(gateway.url()+path, "Accept-Encoding", "gzip")
		if err != nil {
			return 0, err
		}
		total += len(body)
	}
	return float64(total) / 1000, nil
}

// startGateway starts a gateway with the first n projects of the fleet registered.
func startGateway(binary string, projects *fleet, n int, faults bool) (*process, error) {
	data, err := os.MkdirTemp(workDir, "data-")
	if err != nil {
		return nil, err
	}
	var config strings.Builder
	for i := range n {
		fmt.Fprintf(&config, "[[projects]]\nname = \"project-%04d\"\nurl = %q\n", i, projects.url(i, faults))
	}
	file := filepath.Join(data, "switchyard.toml")
	if err := os.WriteFile(file, []byte(config.String()), 0o600); err != nil {
		return nil, err
	}
	gateway, _, err := start(binary, "gateway", "--data", data, "--config", file)
	return gateway, err
}

// measurePipeline asks for fresh pipelines of 10, 100 and 1,000 projects, 5 % of them dead and 2 % hanging.
func measurePipeline(binary string) ([]row, error) {
	var table []row
	for _, c := range []struct {
		projects int
		goal     float64
	}{{10, 2}, {100, 6}, {1000, 40}} {
		projects, err := startFleet(c.projects)
		if err != nil {
			return nil, err
		}
		gateway, err := startGateway(binary, projects, c.projects, true)
		if err != nil {
			return nil, err
		}
		var times []float64
		for i := range 30 {
			time.Sleep(150 * time.Millisecond) // past the 100 ms in which an answer counts as fresh
			began := time.Now()
			if _, _, err := get(gateway.url() + "/api/gateway/pipeline"); err != nil {
				return nil, err
			}
			if i >= 10 { // the first ones open connections and learn who is dead
				times = append(times, float64(time.Since(began).Microseconds())/1000)
			}
		}
		gateway.stop()
		projects.stop()
		middle, worst := median(times), slices.Max(times)
		table = append(table, row{
			fmt.Sprintf("fresh pipeline of %d projects", c.projects),
			fmt.Sprintf("median %.1f ms, worst %.1f ms", middle, worst),
			fmt.Sprintf("≤ %.0f ms, never over 260 ms", c.goal), middle <= c.goal && worst <= 260,
		})
	}
	return table, nil
}

// measureDelivery follows 1,000 feeds: what that costs while idle, and how long an event takes to a stream reader at 100
// events a second, 5 % of the projects dead and 2 % hanging.
func measureDelivery(binary string) ([]row, error) {
	const count, events = 1000, 1000
	projects, err := startFleet(count)
	if err != nil {
		return nil, err
	}
	defer projects.stop()
	gateway, err := startGateway(binary, projects, count, true)
	if err != nil {
		return nil, err
	}
	defer gateway.stop()
	response, err := http.Get(gateway.url() + "/api/gateway/events/stream")
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	delays := make(chan float64, events)
	go func() {
		defer close(delays)
		lines := bufio.NewScanner(response.Body)
		for seen := 0; seen < events && lines.Scan(); {
			data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
			var event struct {
				Reason string `json:"reason"`
			}
			if !ok || json.Unmarshal(data, &event) != nil {
				continue
			}
			pushed, _ := strconv.ParseInt(event.Reason, 10, 64)
			delays <- float64(time.Now().UnixNano()-pushed) / 1e6
			seen++
		}
	}()
	time.Sleep(15 * time.Second) // all feeds are being followed
	used := cpuTime(gateway.pid())
	time.Sleep(10 * time.Second)
	idle := (cpuTime(gateway.pid()) - used).Seconds() / 10 * 100
	resident := memory(gateway.pid())
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for i := range events {
		<-tick.C
		projects.push(i*7%count/100*100%count + i*13%93)
	}
	var got []float64
	deadline := time.After(10 * time.Second)
collect:
	for len(got) < events {
		select {
		case delay, ok := <-delays:
			if !ok {
				break collect
			}
			got = append(got, delay)
		case <-deadline:
			break collect
		}
	}
	if len(got) == 0 {
		return nil, fmt.Errorf("no event arrived")
	}
	slices.Sort(got)
	p50, p99 := got[len(got)/2], got[len(got)*99/100]
	return []row{
		{
			"1,000 followed feeds, idle", fmt.Sprintf("%.1f %% of a core, %.0f MiB", idle, resident),
			"≤ 1 % of a core, ≤ 100 MiB", idle <= 1 && resident <= 100,
		},
		{
			"event at a project server → stream reader, 1,000 projects",
			fmt.Sprintf("p50 %.1f ms, p99 %.1f ms, %d of %d lost", p50, p99, events-len(got), events),
			"p99 ≤ 5 ms, none lost", p99 <= 5 && len(got) == events,
		},
	}, nil
}

// measureFootprint measures a cold start with an existing database, memory and the size of the binary.
func measureFootprint(binary string) ([]row, error) {
	projects, err := startFleet(10)
	if err != nil {
		return nil, err
	}
	defer projects.stop()
	gateway, err := startGateway(binary, projects, 10, false)
	if err != nil {
		return nil, err
	}
	time.Sleep(3 * time.Second)
	idle := memory(gateway.pid())
	for range 200 {
		if _, _, err := get(gateway.url() + "/api/gateway/pipeline"); err != nil {
			return nil, err
		}
	}
	for _, path := range []string{"/", "/api/gateway", "/events"} {
		if _, err := load(gateway.address, path, "Accept-Encoding: gzip\r\n", 200, time.Second); err != nil {
			return nil, err
		}
	}
	loaded := memory(gateway.pid())
	data := gateway.command.Args[slices.Index(gateway.command.Args, "--data")+1]
	gateway.stop()
	var starts []float64
	for range 11 {
		again, took, err := start(binary, "gateway", "--data", data)
		if err != nil {
			return nil, err
		}
		again.stop()
		starts = append(starts, float64(took.Microseconds())/1000)
	}
	info, err := os.Stat(binary)
	if err != nil {
		return nil, err
	}
	first, size := median(starts), float64(info.Size())/(1<<20)
	return []row{
		{"cold start to first answer, existing database", fmt.Sprintf("%.1f ms", first), "≤ 10 ms", first <= 10},
		{"resident memory, idle / loaded", fmt.Sprintf("%.1f / %.1f MiB", idle, loaded), "≤ 20 / 32 MiB", idle <= 20 && loaded <= 32},
		{"stripped binary", fmt.Sprintf("%.1f MiB", size), "≤ 24 MiB", size <= 24},
	}, nil
}

// packageBenchmarks are the figures that benchmarks of packages measure, by the benchmark's name.
var packageBenchmarks = []struct {
	what, pkg, benchmark, goal string
	figure                     func(nsPerOp float64) string
	met                        func(nsPerOp float64) bool
}{
	{
		"redemption of a join token", "./internal/service", "Redemption", "≥ 5,000 a second",
		func(ns float64) string { return fmt.Sprintf("%.0f a second", 1e9/ns) }, func(ns float64) bool { return ns <= 2e5 },
	},
	{
		"1,000 agents written behind", "./internal/service", "WriteBehind", "≤ 5 ms",
		milliseconds, func(ns float64) bool { return ns <= 5e6 },
	},
	{
		"rescan of 10,000 unchanged items", "./internal/board", "Rescan10000", "≤ 50 ms",
		milliseconds, func(ns float64) bool { return ns <= 5e7 },
	},
}

func milliseconds(ns float64) string { return fmt.Sprintf("%.2f ms", ns/1e6) }

var benchmarkLine = regexp.MustCompile(`(?m)^Benchmark\S+\s+\d+\s+([\d.]+) ns/op`)

func measurePackages(string) ([]row, error) {
	var table []row
	for _, b := range packageBenchmarks {
		out, err := exec.Command("go", "test", "-run", "^$", "-bench", "^Benchmark"+b.benchmark+"$", "-count", "3", b.pkg).CombinedOutput()
		if err != nil {
			return nil, fmt.Errorf("%s: %w: %s", b.benchmark, err, out)
		}
		var figures []float64
		for _, match := range benchmarkLine.FindAllSubmatch(out, -1) {
			ns, err := strconv.ParseFloat(string(match[1]), 64)
			if err != nil {
				return nil, err
			}
			figures = append(figures, ns)
		}
		if len(figures) == 0 {
			return nil, fmt.Errorf("no benchmark %s in %s: %s", b.benchmark, b.pkg, out)
		}
		ns := median(figures)
		table = append(table, row{b.what, b.figure(ns), b.goal, b.met(ns)})
	}
	return table, nil
}
