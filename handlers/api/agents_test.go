package api_test

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"switchyard/handlers"
	"switchyard/internal/domain"
	"switchyard/internal/gatewaytest"
	"switchyard/internal/service"
	"switchyard/internal/waittest"
)

// agentGateway is a gateway with project alpha, and its log.
type agentGateway struct {
	*gatewaytest.Site
	log waittest.Log
}

func newAgentGateway(t *testing.T, adminToken domain.Secret) *agentGateway {
	t.Helper()
	g := &agentGateway{}
	g.Site = gatewaytest.NewSite(t, service.Options{
		Log:          slog.New(slog.NewTextHandler(&g.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		AgentTimeout: 3 * time.Minute, // so that heartbeats may be held for a third of it
	}, handlers.Gateway{AdminToken: adminToken})
	g.Add("alpha", "http://127.0.0.1:3001")
	return g
}

// call sends a JSON body, if there is one, and returns status and text of the answer.
func (g *agentGateway) call(method, path, secret, body string) (int, string) {
	g.Helper()
	request, err := http.NewRequest(method, g.URL+path, strings.NewReader(body))
	if err != nil {
		g.Fatal(err)
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	if secret != "" {
		request.Header.Set("Authorization", "Bearer "+secret)
	}
	return g.send(request)
}

func (g *agentGateway) send(request *http.Request) (int, string) {
	g.Helper()
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		g.Error(err)
		return 0, ""
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		g.Error(err)
	}
	return response.StatusCode, string(text)
}

func (g *agentGateway) token() string {
	g.Helper()
	status, text := g.call("POST", "/gateway/tokens", gatewaytest.AdminToken, "")
	var answer struct{ Token string }
	if err := json.Unmarshal([]byte(text), &answer); status != 200 || err != nil || !strings.HasPrefix(answer.Token, "swj_") {
		g.Fatalf("POST /gateway/tokens: %d %s", status, text)
	}
	return answer.Token
}

func (g *agentGateway) join(label string) (id, secret string) {
	g.Helper()
	status, text := g.call("POST", "/gateway/agents", "", fmt.Sprintf(`{"token":%q,"label":%q}`, g.token(), label))
	var answer struct {
		Agent  domain.Agent
		Secret string
	}
	if err := json.Unmarshal([]byte(text), &answer); status != 201 || err != nil {
		g.Fatalf("POST /gateway/agents: %d %s", status, text)
	}
	return answer.Agent.ID, answer.Secret
}

func TestAgentAnswers(t *testing.T) {
	g := newAgentGateway(t, "")
	a, aSecret := g.join("a")
	b, bSecret := g.join("b")
	if _, text := g.call("GET", "/gateway/agents", "", ""); !strings.HasPrefix(text, `[{"id":"`+a+`","label":"a","version":"","state":"idle","detail":"",`+
		`"assigned_project":null,"project_url":null,"joined_at_ms":`) || !strings.Contains(text, `,"last_seen_ms":`) {
		t.Errorf("the list is %s", text)
	}
	unused := g.token()
	refusal := "the join token is not valid: it is unknown, used, revoked or expired"
	noAgent := "no agent has this id and secret"
	long := strings.Repeat("x", 101)
	for _, c := range []struct {
		method, path, secret, body string
		status                     int
		want                       string // the whole text, or its beginning, followed by "…"
	}{
		{"POST", "/gateway/agents", "", "", 400, "a JSON body is required"},
		{"POST", "/gateway/agents", "", `{}`, 400, "token: …"},
		{"POST", "/gateway/agents", "", `{"token":1}`, 400, "token: …"},
		{"POST", "/gateway/agents", "", `{"token":"` + unused + `","label":1}`, 400, "label: …"},
		{"POST", "/gateway/agents", "", `{"token":"` + unused + `","label":""}`, 400, "label: …"},
		{"POST", "/gateway/agents", "", `{"token":"` + unused + `","label":"` + long + `"}`, 400, "label: …"},
		{"POST", "/gateway/agents", "", `{"token":"` + unused + `","label":"a\u0007"}`, 400, "label: …"},
		{"POST", "/gateway/agents", "", `{"token":"` + unused + `","version":[]}`, 400, "version: …"},
		{"POST", "/gateway/agents", "", `{"token":"swj_unknown"}`, 401, refusal},
		{"POST", "/gateway/agents", "", `{"token":""}`, 401, refusal},
		{"POST", "/gateway/agents", "", `{"token":"` + unused + `","label":null,"version":null,"more":1}`, 201, `{"agent":{"id":"…`},
		{"POST", "/gateway/agents", "", `{"token":"` + unused + `"}`, 401, refusal},
		{"GET", "/gateway/tokens", "", "", 405, "method not allowed"},

		{"POST", "/gateway/agents/" + a + "/heartbeat", "", `{}`, 401, noAgent},
		{"POST", "/gateway/agents/" + a + "/heartbeat", bSecret, `{}`, 401, noAgent},
		{"POST", "/gateway/agents/" + a + "/heartbeat", unused, `{}`, 401, noAgent},
		{"POST", "/gateway/agents/nobody/heartbeat", aSecret, `{}`, 401, noAgent},
		{"POST", "/gateway/agents/nobody/heartbeat", aSecret, ``, 401, noAgent},
		{"POST", "/gateway/agents/" + a + "/heartbeat", aSecret, ``, 400, "a JSON body is required"},
		{"POST", "/gateway/agents/" + a + "/heartbeat", aSecret, `{"state":"busy"}`, 400, "state: …"},
		{"POST", "/gateway/agents/" + a + "/heartbeat", aSecret, `{"state":7}`, 400, "state: …"},
		{"POST", "/gateway/agents/" + a + "/heartbeat", aSecret, `{"detail":{}}`, 400, "detail: …"},
		{"POST", "/gateway/agents/" + a + "/heartbeat?wait=soon", aSecret, `{}`, 400, "wait: …"},
		{"POST", "/gateway/agents/" + a + "/heartbeat?wait=", aSecret, `{}`, 400, "wait: …"},
		{"POST", "/gateway/agents/" + a + "/heartbeat?wait=10", aSecret, `{}`, 400, "wait: …"},
		{"POST", "/gateway/agents/" + a + "/heartbeat?wait=0s", aSecret, `{"state":"running","detail":"<b>\u0000"}`, 200, `{"id":"` + a + `","label":"a","version":"","state":"running","detail":"<b>\u0000",…`},
		{"POST", "/gateway/agents/" + a + "/heartbeat", aSecret, `{"state":null}`, 200, `{"id":"` + a + `","label":"a","version":"","state":"running",…`},

		{"POST", "/gateway/agents/" + a + "/assign", "", ``, 400, "a JSON body is required"},
		{"POST", "/gateway/agents/" + a + "/assign", "", `{"project":1}`, 400, "project: …"},
		{"POST", "/gateway/agents/" + a + "/assign", "", `{"project":"beta"}`, 400, "project 'beta' does not exist"},
		{"POST", "/gateway/agents/" + a + "/assign", "", `{"project":""}`, 400, "project '' does not exist"},
		{"POST", "/gateway/agents/nobody/assign", "", `{"project":"alpha"}`, 404, "agent not found"},
		{"POST", "/gateway/agents/nobody/assign", "", `{}`, 404, "agent not found"},
		{"POST", "/gateway/agents/" + a + "/assign", "", `{"project":"alpha"}`, 200, `{"id":"` + a + `",…`},
		{"POST", "/gateway/agents/" + a + "/heartbeat?assigned=&wait=40s", aSecret, `{}`, 200, `{"id":"` + a + `",…`},
		{"POST", "/gateway/agents/" + a + "/assign", "", `{}`, 200, `{"id":"` + a + `",…`},

		{"DELETE", "/gateway/agents/" + b, aSecret, "", 401, noAgent},
		{"DELETE", "/gateway/agents/" + b, bSecret, "", 204, ""},
		{"DELETE", "/gateway/agents/" + b, bSecret, "", 404, "agent not found"},
		{"POST", "/gateway/agents/" + b + "/heartbeat", bSecret, `{}`, 401, noAgent},
		{"POST", "/gateway/agents/" + b + "/assign", "", `{}`, 404, "agent not found"},
		{"DELETE", "/gateway/agents/" + a, "", "", 204, ""},
		{"DELETE", "/gateway/agents/" + a, "", "", 404, "agent not found"},
		{"PUT", "/gateway/agents/" + a, "", "", 405, "method not allowed"},
	} {
		status, text := g.call(c.method, c.path, c.secret, c.body)
		begin, more := strings.CutSuffix(c.want, "…")
		if status != c.status || !strings.HasPrefix(text, begin) || !more && text != begin {
			t.Errorf("%s %s %s: %d %s, want %d %s", c.method, c.path, c.body, status, text, c.status, c.want)
		}
	}
	c, cSecret := g.join("c")
	request, err := http.NewRequest("POST", g.URL+"/gateway/agents/"+c+"/heartbeat", strings.NewReader(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Basic "+cSecret)
	if status, text := g.send(request); status != 401 {
		t.Errorf("a secret of another scheme: %d %s", status, text)
	}
	if log := g.log.String(); !strings.Contains(log, "agent not assigned") || strings.Contains(log, "swj_") || strings.Contains(log, "sws_") {
		t.Errorf("the log must name the cause of a failed assignment, and no secret:\n%s", log)
	}
}

// TestAgentsNeedNoAdminToken: even with an admin token, agents use their secrets, and nothing else is open to them.
func TestAgentsNeedNoAdminToken(t *testing.T) {
	g := newAgentGateway(t, gatewaytest.AdminToken)
	a, aSecret := g.join("a")
	b, bSecret := g.join("b")
	for _, c := range []struct {
		method, path, secret, body string
		status                     int
	}{
		{"POST", "/gateway/tokens", "", "", 401},
		{"POST", "/gateway/tokens", aSecret, "", 401},
		{"GET", "/gateway/agents", aSecret, "", 401},
		{"GET", "/gateway/agents", gatewaytest.AdminToken, "", 200},
		{"POST", "/gateway/agents/" + a + "/assign", aSecret, `{}`, 401},
		{"POST", "/gateway/agents/" + a + "/assign", gatewaytest.AdminToken, `{}`, 200},
		{"POST", "/gateway/agents/" + a + "/heartbeat", aSecret, `{}`, 200},
		{"POST", "/gateway/agents/" + a + "/heartbeat", gatewaytest.AdminToken, `{}`, 401},
		{"DELETE", "/gateway/agents/" + a, "", "", 401},
		{"DELETE", "/gateway/agents/" + a, "wrong", "", 401},
		{"DELETE", "/gateway/agents/" + a, bSecret, "", 401},
		{"DELETE", "/gateway/agents/nobody", "wrong", "", 401},
		{"DELETE", "/gateway/agents/nobody", gatewaytest.AdminToken, "", 404},
		{"DELETE", "/gateway/agents/" + a, aSecret, "", 204},
		{"DELETE", "/gateway/agents/" + a, aSecret, "", 404},
		{"DELETE", "/gateway/agents/" + b, gatewaytest.AdminToken, "", 204},
	} {
		if status, text := g.call(c.method, c.path, c.secret, c.body); status != c.status {
			t.Errorf("%s %s: %d %s, want %d", c.method, c.path, status, text, c.status)
		}
	}
}

// TestAgentsSendAtMost4KiB: anybody can send to these addresses.
func TestAgentsSendAtMost4KiB(t *testing.T) {
	g := newAgentGateway(t, "")
	id, secret := g.join("a")
	keys := strings.Builder{}
	for i := range 100_000 {
		fmt.Fprintf(&keys, `"%d":0,`, i)
	}
	pad := func(fields string, size int) string {
		return "{" + fields + strings.Repeat(" ", size-len(fields)-2) + "}"
	}
	for _, c := range []struct {
		path, secret, body string
		status             int
	}{
		{"/gateway/agents", "", "{" + keys.String() + `"token":"swj_x"}`, 413},
		{"/gateway/agents", "", pad(`"token":"swj_x"`, 4097), 413},
		{"/gateway/agents", "", pad(`"token":"swj_x"`, 4096), 401},
		{"/gateway/agents/" + id + "/heartbeat", secret, pad("", 4097), 413},
		{"/gateway/agents/" + id + "/heartbeat", secret, pad("", 4096), 200},
	} {
		if status, text := g.call("POST", c.path, c.secret, c.body); status != c.status {
			t.Errorf("%s with %d bytes: %d %s, want %d", c.path, len(c.body), status, text, c.status)
		}
	}
}

// TestAgentBodies: the order is 401, 415, 413, 400.
func TestAgentBodies(t *testing.T) {
	g := newAgentGateway(t, "")
	id, secret := g.join("a")
	large := `{"detail":"` + strings.Repeat("x", 1<<20) + `"}`
	for _, c := range []struct {
		secret, mediaType, body string
		status                  int
	}{
		{"sws_wrong", "text/plain", large, 401},
		{secret, "text/plain", large, 415},
		{secret, "", `{}`, 415},
		{secret, "application/json", large, 413},
		{secret, "application/json", `{"state":`, 400},
		{secret, "application/json", `{} {}`, 400},
		{secret, "text/plain", ``, 400},
		{secret, "application/json; charset=utf-8", `{}`, 200},
	} {
		request, err := http.NewRequest("POST", g.URL+"/gateway/agents/"+id+"/heartbeat", strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+c.secret)
		if c.mediaType != "" {
			request.Header.Set("Content-Type", c.mediaType)
		}
		if status, text := g.send(request); status != c.status {
			t.Errorf("%q, %d bytes: %d %s, want %d", c.mediaType, len(c.body), status, text, c.status)
		}
	}
}

func TestOneTokenIsRedeemedOnceAmongAHundredCallers(t *testing.T) {
	g := newAgentGateway(t, "")
	body := fmt.Sprintf(`{"token":%q}`, g.token())
	var wg sync.WaitGroup
	start, statuses := make(chan struct{}), make(chan int, 100)
	for range 100 {
		wg.Go(func() {
			<-start
			status, _ := g.call("POST", "/gateway/agents", "", body)
			statuses <- status
		})
	}
	close(start)
	wg.Wait()
	close(statuses)
	count := map[int]int{}
	for status := range statuses {
		count[status]++
	}
	if count[201] != 1 || count[401] != 99 {
		t.Errorf("statuses are %v, want one 201 and 99 times 401", count)
	}
	if agents := g.Agents.All(); len(agents) != 1 {
		t.Errorf("%d agents joined, want 1", len(agents))
	}
}

func TestAssignmentReachesAHeldHeartbeat(t *testing.T) {
	g := newAgentGateway(t, "")
	id, secret := g.join("a")
	answer := make(chan string)
	go func() {
		_, text := g.call("POST", "/gateway/agents/"+id+"/heartbeat?assigned=&wait=55s", secret, `{"state":"running"}`)
		answer <- text
	}()
	waittest.Until(t, "the heartbeat is held", func() bool { return g.Agents.Alive()[0].State == domain.AgentRunning }) // it is being held
	began := time.Now()
	if status, text := g.call("POST", "/gateway/agents/"+id+"/assign", "", `{"project":"alpha"}`); status != 200 {
		t.Fatal(text)
	}
	if text := <-answer; !strings.Contains(text, `"assigned_project":"alpha","project_url":"http://127.0.0.1:3001"`) {
		t.Errorf("the answer is %s", text)
	}
	if took := time.Since(began); took > 40*time.Second { // the heartbeat is held for 55
		t.Errorf("the assignment took %v", took)
	}
}
