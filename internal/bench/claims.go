package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"switchyard/internal/pgtest"
)

const (
	claimingGateways, claimingBoards, claimingAgents = 3, 4, 16
	claimingTime                                     = 10 * time.Second
)

// claimable are the stories of each board (boardBody) that are not done.
var claimable = []string{
	"10_story_measure", "11_story_measure", "12_story_measure", "13_story_measure", "14_story_measure", "15_story_measure",
}

// measureClaims measures how many stories agents claim and release a second, four to each board, each call at the next
// gateway. Whoever is refused tries the next story, which is not counted.
// That no story is claimed twice is shown by make stress.
func measureClaims(binary string, postgres *pgtest.Server) ([]row, error) {
	projects, err := startProjects(claimingBoards)
	if err != nil {
		return nil, err
	}
	defer projects.stop()
	gateways, stop, err := startGateways(binary, postgres, projects, claimingGateways)
	defer stop()
	if err != nil {
		return nil, err
	}
	if err := awaitFollowed(projects); err != nil {
		return nil, err
	}
	time.Sleep(3 * time.Second)
	var claims atomic.Int64
	ctx, cancel := context.WithTimeout(context.Background(), claimingTime)
	defer cancel()
	failures := make(chan error, claimingAgents)
	for n := range claimingAgents {
		token, err := agentToken(gateways[0].url(), fmt.Sprint("builder-", n), claimingProject(n))
		if err != nil {
			return nil, err
		}
		go func() { failures <- claimAndRelease(ctx, gateways, token, n, &claims) }()
	}
	used := func() (sum time.Duration) {
		for _, g := range gateways {
			sum += cpuTime(g.pid())
		}
		return sum
	}
	began, before := time.Now(), used()
	for range claimingAgents {
		if err := <-failures; err != nil {
			return nil, err
		}
	}
	each := milliseconds(used()-before) / float64(claims.Load())
	rate := float64(claims.Load()) / time.Since(began).Seconds()
	return []row{{
		fmt.Sprintf("%d agents claim and release stories of %d boards over %d gateways",
			claimingAgents, claimingBoards, claimingGateways),
		fmt.Sprintf("%.0f claims/s, %.1f ms of CPU each", rate, each), "≥ 200/s", rate >= 200,
	}}, nil
}

func claimingProject(agent int) string { return fmt.Sprintf("project-%04d", agent%claimingBoards) }

func claimAndRelease(ctx context.Context, gateways []*process, token string, n int, claims *atomic.Int64) error {
	stories := "/api/gateway/projects/" + claimingProject(n) + "/stories/"
	for ; ctx.Err() == nil; n++ {
		at := gateways[n%len(gateways)].url() + stories
		story := claimable[n%len(claimable)]
		status, err := sendAs(token, "POST", at+"claim", fmt.Sprintf(`{"story_id":%q}`, story), nil)
		switch {
		case err != nil:
			return err
		case status == http.StatusConflict:
			continue
		case status != http.StatusOK:
			return fmt.Errorf("claiming: status %d", status)
		}
		claims.Add(1)
		if status, err = sendAs(token, "DELETE", at+story+"/claim", "", nil); err != nil || status != http.StatusNoContent {
			return fmt.Errorf("releasing: status %d, %w", status, err)
		}
	}
	return nil
}

// agentToken makes an agent join at a gateway, assigns it to a project, and returns its token.
func agentToken(gateway, label, project string) (string, error) {
	var join, given struct{ Token string }
	var joined struct {
		Agent  struct{ ID string }
		Secret string
	}
	agents := gateway + "/gateway/agents"
	for _, step := range []func() (int, error){
		func() (int, error) { return sendAs("", "POST", gateway+"/gateway/tokens", "", &join) },
		func() (int, error) {
			return sendAs("", "POST", agents, fmt.Sprintf(`{"token":%q,"label":%q}`, join.Token, label), &joined)
		},
		func() (int, error) {
			return sendAs("", "POST", agents+"/"+joined.Agent.ID+"/assign", fmt.Sprintf(`{"project":%q}`, project), nil)
		},
		func() (int, error) {
			return sendAs(joined.Secret, "POST", agents+"/"+joined.Agent.ID+"/token", "", &given)
		},
	} {
		if status, err := step(); err != nil || status >= 300 {
			return "", fmt.Errorf("an agent could not join: status %d, %w", status, err)
		}
	}
	return given.Token, nil
}

// sendAs sends a request with a bearer token, unless it is "", and decodes the answer into into, unless that is nil.
func sendAs(token, method, url, body string, into any) (status int, err error) {
	request, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	request.Header.Set("Content-Type", "application/json")
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body) // so that the connection is reused
	if err == nil && into != nil {
		err = json.Unmarshal(answer, into)
	}
	return response.StatusCode, err
}
