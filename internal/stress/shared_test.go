//go:build stress

package stress

import (
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"testing"
	"time"
)

// everywhere is how soon a change made at one gateway must apply at all.
const everywhere = time.Second

// redemptions is how many clients redeem one join token at once.
const redemptions = 100

func TestOneTokenMakesOneAgent(t *testing.T) {
	g := newGroup(t, "")
	var token struct{ Token string }
	must(t, "POST", g.members[0].url+"/gateway/tokens", nil, &token)
	statuses := make(chan int, redemptions)
	var all sync.WaitGroup
	for i := range redemptions {
		all.Go(func() {
			status, err := call(t.Context(), "POST", g.members[i%len(g.members)].url+"/gateway/agents", "", map[string]string{"token": token.Token}, nil)
			if err != nil {
				t.Error(err)
			}
			statuses <- status
		})
	}
	all.Wait()
	close(statuses)
	counts := map[int]int{}
	for status := range statuses {
		counts[status]++
	}
	t.Logf("%d redemptions over %d gateways: %v", redemptions, len(g.members), counts)
	if counts[http.StatusCreated] != 1 || counts[http.StatusUnauthorized] != redemptions-1 {
		t.Errorf("the statuses are %v", counts)
	}
}

// TestAnAssignmentEndsAHeartbeatHeldElsewhere: the agent joined at one gateway, waits at another, and is assigned at a third.
func TestAnAssignmentEndsAHeartbeatHeldElsewhere(t *testing.T) {
	g := newGroup(t, "")
	must(t, "POST", g.members[0].url+"/api/gateway/projects", map[string]string{"name": "alpha", "url": "http://127.0.0.1:1"}, nil)
	var token struct{ Token string }
	must(t, "POST", g.members[1].url+"/gateway/tokens", nil, &token)
	var reply struct {
		Agent  struct{ ID string }
		Secret string
	}
	must(t, "POST", g.members[0].url+"/gateway/agents", map[string]string{"token": token.Token}, &reply)
	assigned := ""
	var slowest time.Duration
	for i := range 30 {
		held, told := g.members[(i+1)%len(g.members)], make(chan time.Time, 1)
		go func() {
			var agent struct {
				Project string `json:"assigned_project"`
			}
			address := fmt.Sprintf("%s/gateway/agents/%s/heartbeat?wait=15s&assigned=%s", held.url, reply.Agent.ID, assigned)
			status, err := call(t.Context(), "POST", address, reply.Secret, map[string]string{}, &agent)
			if err != nil || status != http.StatusOK || agent.Project == assigned {
				t.Errorf("heartbeat %d: status %d, %v, assigned to %q as before", i, status, err, agent.Project)
			}
			told <- time.Now()
		}()
		time.Sleep(300 * time.Millisecond) // it is held
		next := map[string]any{"project": "alpha"}
		if assigned != "" {
			next["project"] = nil
		}
		began := time.Now()
		must(t, "POST", fmt.Sprintf("%s/gateway/agents/%s/assign", g.members[(i+2)%len(g.members)].url, reply.Agent.ID), next, nil)
		slowest = max(slowest, (<-told).Sub(began))
		if assigned == "" {
			assigned = "alpha"
		} else {
			assigned = ""
		}
	}
	t.Logf("an assignment reached the agent within %v", slowest.Round(time.Millisecond))
	if slowest > everywhere {
		t.Errorf("an assignment took %v", slowest)
	}
}

// TestASessionEndsEverywhere: a session begun at one gateway is valid at all, and once ended at another one it is refused by all.
func TestASessionEndsEverywhere(t *testing.T) {
	g := newGroup(t, rightToken)
	browser := http.Client{Timeout: client.Timeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	login, err := browser.PostForm(g.members[0].url+"/login", url.Values{"token": {rightToken}})
	if err != nil {
		t.Fatal(err)
	}
	login.Body.Close()
	cookies := login.Cookies()
	if login.StatusCode != http.StatusSeeOther || len(cookies) == 0 {
		t.Fatalf("login: %s, cookies %v", login.Status, cookies)
	}
	status := func(m *member) int {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, m.url+"/api/gateway", nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range cookies {
			request.AddCookie(c)
		}
		response, err := browser.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		return response.StatusCode
	}
	for i, m := range g.members {
		if got := status(m); got != http.StatusOK {
			t.Errorf("gateway %d answers %d to a session that began at another", i, got)
		}
	}
	var list struct {
		Sessions []struct{ ID string }
	}
	if _, err := call(t.Context(), "GET", g.members[1].url+"/api/gateway/sessions", rightToken, nil, &list); err != nil || len(list.Sessions) != 1 {
		t.Fatalf("sessions: %+v, %v", list, err)
	}
	began := time.Now()
	address := g.members[1].url + "/api/gateway/sessions/" + list.Sessions[0].ID
	if status, err := call(t.Context(), "DELETE", address, rightToken, nil, nil); err != nil || status != http.StatusNoContent {
		t.Fatalf("ending the session: %d, %v", status, err)
	}
	for i, m := range g.members {
		if !until(soon, func() bool { return status(m) == http.StatusUnauthorized }) {
			t.Errorf("a session that was ended is good at gateway %d after %v", i, soon)
		}
	}
	took := time.Since(began)
	t.Logf("refused everywhere after %v", took.Round(time.Millisecond))
	if took > everywhere {
		t.Errorf("a session that was ended was good for %v", took)
	}
}
