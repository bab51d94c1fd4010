package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"switchyard/internal/pgtest"
)

const (
	hookAgents, hookSessions = 10, 50
	hookRate                 = 1000 // a second, of all sessions together
	hookTime                 = 10 * time.Second
	// hookLimit is what an agent waits for an answer to a hook.
	hookLimit = 50 * time.Millisecond
)

// measureHooks measures what the hooks of coding agents cost a gateway alone.
func measureHooks(binary string) ([]row, error) {
	projects, err := startProjects(hookAgents)
	if err != nil {
		return nil, err
	}
	defer projects.stop()
	gateway, err := startGateway(binary, projects, hookAgents, false)
	if err != nil {
		return nil, err
	}
	defer gateway.stop()
	journals, err := filepath.Glob(filepath.Join(workDir, "data-*", "switchyard.db-wal"))
	if err != nil || len(journals) == 0 {
		return nil, fmt.Errorf("no journal of a database: %w", err)
	}
	writes := make(chan float64)
	r, err := hookRow(projects, []*process{gateway}, func(stopped <-chan struct{}) {
		go func() { writes <- changesOf(journals[len(journals)-1], stopped) }()
	})
	if err != nil {
		return nil, err
	}
	rate := <-writes
	r.measured += fmt.Sprintf(", %.1f writes/s", rate)
	r.goal += ", ≤ 1 write/s"
	r.met = r.met && rate <= 1
	return []row{r}, nil
}

// measureSharedHooks measures the same for several gateways, each of which hears of a part.
func measureSharedHooks(binary string, postgres *pgtest.Server) ([]row, error) {
	projects, err := startProjects(hookAgents)
	if err != nil {
		return nil, err
	}
	defer projects.stop()
	gateways, stop, err := startGateways(binary, postgres, projects, 2)
	defer stop()
	if err != nil {
		return nil, err
	}
	r, err := hookRow(projects, gateways, func(<-chan struct{}) {})
	return []row{r}, err
}

// changesOf returns how often a file changes a second until stopped is closed. Changes within a tenth of a second are
// one.
func changesOf(path string, stopped <-chan struct{}) float64 {
	began, changes, before := time.Now(), -1, time.Time{}
	for {
		if info, err := os.Stat(path); err == nil && !info.ModTime().Equal(before) {
			changes, before = changes+1, info.ModTime()
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-stopped:
			return float64(changes) / time.Since(began).Seconds()
		}
	}
}

// hookRow has sessions of agents, each of which works on a story, send their hooks, the next one to the next gateway,
// each over a connection of its own, as a command for each hook does. watch is called when that begins.
func hookRow(projects *projectServers, gateways []*process, watch func(stopped <-chan struct{})) (r row, err error) {
	if err := awaitFollowed(projects); err != nil {
		return r, err
	}
	tokens := make([]string, hookAgents)
	for n := range tokens {
		project := fmt.Sprintf("project-%04d", n)
		if tokens[n], err = agentToken(gateways[0].url(), fmt.Sprint("builder-", n), project); err != nil {
			return r, err
		}
		claim := gateways[0].url() + "/api/gateway/projects/" + project + "/stories/claim"
		status, err := sendAs(tokens[n], "POST", claim, fmt.Sprintf(`{"story_id":%q}`, claimable[0]), nil)
		if err != nil || status != http.StatusOK {
			return r, fmt.Errorf("claiming: status %d, %w", status, err)
		}
	}
	time.Sleep(3 * time.Second)
	used := func() (sum time.Duration) {
		for _, g := range gateways {
			sum += cpuTime(g.pid())
		}
		return sum
	}
	var sessions sync.WaitGroup
	took, failures := make([][]time.Duration, hookSessions), make([]error, hookSessions)
	stopped := make(chan struct{})
	began, before := time.Now(), used()
	watch(stopped)
	for n := range hookSessions {
		sessions.Go(func() { took[n], failures[n] = sendHooks(gateways, tokens[n%len(tokens)], n, began) })
	}
	sessions.Wait()
	share := (used() - before).Seconds() / time.Since(began).Seconds()
	close(stopped)
	for _, err := range failures {
		if err != nil {
			return r, err
		}
	}
	all := slices.Sorted(slices.Values(slices.Concat(took...)))
	late := all[len(all)*99/100]
	rate := float64(len(all)) / time.Since(began).Seconds()
	what := fmt.Sprintf("hooks of %d sessions of coding agents, %d a second", hookSessions, hookRate)
	if len(gateways) > 1 {
		what += fmt.Sprintf(", over %d gateways", len(gateways))
	}
	return row{
		what, fmt.Sprintf("%.0f hooks/s, %.0f %% of a core, p99 %.1f ms", rate, 100*share, milliseconds(late)),
		"≤ 50 % of a core, p99 ≤ 50 ms", rate > 0.95*hookRate && share <= 0.5 && late <= hookLimit,
	}, nil
}

// hookRound is what a session's client tells while it works on one prompt.
var hookRound = slices.Concat([]string{"UserPromptSubmit"},
	slices.Repeat([]string{"PreToolUse", "PostToolUse"}, 8), []string{"Stop"})

// sendHooks sends a session's part of the hooks, at its pace, and returns how long each answer took.
func sendHooks(gateways []*process, token string, n int, began time.Time) (took []time.Duration, err error) {
	const pause = time.Second * hookSessions / hookRate
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for i := 0; time.Since(began) < hookTime; i++ {
		time.Sleep(time.Until(began.Add(pause*time.Duration(i) + pause*time.Duration(n)/hookSessions)))
		body := fmt.Sprintf(`{"hook_event_name":%q,"session_id":"session-%d","cwd":"/src/shop","permission_mode":"default",`+
			`"tool_name":"Bash","tool_use_id":"use-%d","host":"build-7","worktree":"/src/shop-%[2]d","branch":"story/%[2]d"}`,
			hookRound[i%len(hookRound)], n, i/2)
		at := gateways[i%len(gateways)].url() + "/api/hooks/claude-code"
		request, err := http.NewRequest(http.MethodPost, at, strings.NewReader(body))
		if err != nil {
			return nil, err
		}
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Authorization", "Bearer "+token)
		sent := time.Now()
		response, err := client.Do(request)
		if err != nil {
			return nil, err
		}
		took = append(took, time.Since(sent))
		_ = response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return nil, fmt.Errorf("a hook: %s", response.Status)
		}
	}
	return took, nil
}
