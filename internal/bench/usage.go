package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
)

const (
	// Each of the agents posts what Claude Code sends of a call of a model, with the events around it, at its interval.
	usageAgents, usageProjects, usageInterval = 1000, 200, 10 * time.Second
	usageRecord                               = "internal/otlp/testdata/claude-code-1.json"
)

// measureUsage measures what it takes to count the calls that agents report, each for the story that it claims.
func measureUsage(binary string) ([]row, error) {
	sent, err := os.ReadFile(usageRecord)
	if err != nil {
		return nil, err
	}
	projects, err := startProjects(usageProjects)
	if err != nil {
		return nil, err
	}
	defer projects.stop()
	gateway, err := startGateway(binary, projects, usageProjects, false)
	if err != nil {
		return nil, err
	}
	defer gateway.stop()
	if err := awaitFollowed(projects); err != nil {
		return nil, err
	}
	var tokens []string
	for n := range usageAgents {
		project := fmt.Sprintf("project-%04d", n%usageProjects)
		token, err := agentToken(gateway.url(), fmt.Sprint("builder-", n), project)
		if err != nil {
			return nil, err
		}
		claim := gateway.url() + "/api/gateway/projects/" + project + "/stories/claim"
		body := fmt.Sprintf(`{"story_id":%q}`, claimable[n/usageProjects])
		if status, err := sendAs(token, "POST", claim, body, nil); err != nil || status != http.StatusOK {
			return nil, fmt.Errorf("claiming: status %d, %w", status, err)
		}
		tokens = append(tokens, token)
	}
	const rounds = 3
	var posts sync.WaitGroup
	failures := make(chan error, rounds*usageAgents)
	began := time.Now()
	for n, token := range tokens {
		posts.Go(func() {
			for round := range rounds {
				at := time.Duration(round)*usageInterval + usageInterval*time.Duration(n)/usageAgents
				time.Sleep(time.Until(began.Add(at)))
				body := strings.NewReplacer("req_10", fmt.Sprintf("req_%d_%d", n, round),
					"switchyard.", "other.", // so that the claim says which story it is
					"2026-", "2001-", // so that it is now
				).Replace(string(sent))
				status, err := sendAs(token, "POST", gateway.url()+"/v1/logs", body, nil)
				if err != nil || status != http.StatusOK {
					failures <- fmt.Errorf("reporting a call: status %d, %w", status, err)
				}
			}
		})
	}
	share := cpuShare(gateway, rounds*usageInterval)
	posts.Wait()
	if len(failures) > 0 {
		return nil, <-failures
	}
	body, _, err := get(gateway.url() + "/api/gateway/cost")
	if err != nil {
		return nil, err
	}
	var cost struct {
		Total   struct{ Calls int }
		Stories []struct{}
		More    int
	}
	if err := json.Unmarshal(body, &cost); err != nil {
		return nil, err
	}
	if stories := len(cost.Stories) + cost.More; cost.Total.Calls != rounds*usageAgents || stories != usageAgents {
		return nil, fmt.Errorf("%d calls for %d stories were counted", cost.Total.Calls, stories)
	}
	return []row{{
		"1,000 agents report a call of a model every 10 s, 15 kB each", fmt.Sprintf("%.1f %% of a core", share),
		"≤ 20 % of a core", share <= 20,
	}}, nil
}
