//go:build stress

package stress

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const (
	claimers = 16
	// waitingStories is how many stories wait at a time, so that the board stays of a usual size.
	waitingStories = 100
	// claimRate is how many claims a second are wanted while nobody is killed.
	claimRate = 200
)

// TestManyAgentsShareABoard: 16 agents claim and finish 10,000 stories over three gateways, over the API and MCP, while gateways are
// killed and agents lose their connections. Nobody gets a story that another one has, and none is lost: an agent that was killed finds
// what it has claimed by its identity.
func TestManyAgentsShareABoard(t *testing.T) {
	total := 10_000
	if testing.Short() {
		total = 1_000
	}
	program := build(t)
	g := newGroupOf(t, program, "", nil)
	b := newClaimBoard(t, program, total)
	must(t, "POST", g.members[0].url+"/api/gateway/projects", map[string]string{"name": "alpha", "url": b.url}, nil)
	agents := make([]*claimer, claimers)
	for i := range agents {
		agents[i] = newClaimer(t, g, b, i)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var running sync.WaitGroup
	running.Go(func() { b.refill(ctx) })
	began := time.Now()
	for _, a := range agents {
		running.Go(func() { a.run(ctx) })
	}
	undisturbed := total / 4
	reached := func(n int) bool { return int(b.finished.Load()) >= n }
	if !until(soon, func() bool { return reached(claimers) }) {
		t.Fatal("the agents do not begin")
	}
	warm, before := time.Now(), b.finished.Load()
	if !until(10*time.Minute, func() bool { return reached(undisturbed) }) {
		t.Fatalf("only %d stories are finished", b.finished.Load())
	}
	rate := float64(b.finished.Load()-before) / time.Since(warm).Seconds()
	t.Logf("undisturbed: %.0f claimed, moved and finished a second (%d wanted)", rate, claimRate)
	kills := 0
	for ; !reached(total); kills++ {
		m := g.members[kills%len(g.members)]
		m.kill()
		pause(ctx, 500*time.Millisecond)
		m.start()
		a := agents[rand.N(claimers)]
		a.kill()
		pause(ctx, 1500*time.Millisecond)
		if time.Since(began) > 30*time.Minute {
			t.Fatalf("only %d stories are finished after %v", b.finished.Load(), time.Since(began))
		}
	}
	stop()
	running.Wait()
	t.Logf("%d stories in %v, %d gateways and as many agents killed", b.finished.Load(), time.Since(began).Round(time.Second), kills)
	b.check(total)
	if !until(15*time.Second, func() bool { return !bytes.Contains(pipelineOf(t, g), []byte(`"claim":{`)) }) {
		t.Errorf("claims outlive their stories: %s", pipelineOf(t, g))
	}
}

func pipelineOf(t *testing.T, g *group) []byte {
	t.Helper()
	var text json.RawMessage
	must(t, "GET", g.members[0].url+"/api/gateway/pipeline", nil, &text)
	return text
}

// claimBoard is a project server's directory, and what agents have got of it.
type claimBoard struct {
	t        *testing.T
	url, dir string
	total    int
	finished atomic.Int64

	mu      sync.Mutex
	holders map[string]map[int]bool // by story
	done    map[string]time.Time
}

func newClaimBoard(t *testing.T, program string, total int) *claimBoard {
	t.Helper()
	b := &claimBoard{t: t, dir: t.TempDir(), total: total, holders: map[string]map[int]bool{}, done: map[string]time.Time{}}
	for _, stage := range []string{"1_backlog", "2_current", "3_done"} {
		if err := os.Mkdir(filepath.Join(b.dir, stage), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	server := newServer(t, "project", loopback(t, 40), program, "project", "--name", "alpha", "--work", b.dir, "--allow-writes")
	server.start()
	b.url = server.url
	return b
}

// refill keeps stories waiting until all have been written, and removes those that are finished.
func (b *claimBoard) refill(ctx context.Context) {
	for next := 1; ctx.Err() == nil; pause(ctx, 20*time.Millisecond) {
		waiting, _ := os.ReadDir(filepath.Join(b.dir, "1_backlog"))
		for n := len(waiting); n < waitingStories && next <= b.total; n++ {
			path := filepath.Join(b.dir, "1_backlog", fmt.Sprintf("%d_story.md", next))
			if err := os.WriteFile(path, []byte("# A story\n"), 0o600); err != nil {
				b.t.Error(err)
			}
			next++
		}
		done, _ := os.ReadDir(filepath.Join(b.dir, "3_done"))
		for _, entry := range done {
			b.finish(strings.TrimSuffix(entry.Name(), ".md"))
		}
	}
}

func (b *claimBoard) got(agent int, id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.holders[id] == nil {
		b.holders[id] = map[int]bool{}
	}
	b.holders[id][agent] = true
	if len(b.holders[id]) > 1 {
		b.t.Errorf("%s was claimed by the agents %v", id, slices.Collect(maps.Keys(b.holders[id])))
	}
}

// finish counts a story in the last stage, and removes one that has been there for a while.
func (b *claimBoard) finish(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	since, counted := b.done[id]
	switch {
	case !counted:
		b.done[id] = time.Now()
		b.finished.Add(1)
	case time.Since(since) > 5*time.Second:
		_ = os.Remove(filepath.Join(b.dir, "3_done", id+".md"))
	}
}

func (b *claimBoard) check(total int) {
	b.t.Helper()
	for i := range total {
		id := fmt.Sprintf("%d_story", i+1)
		if _, done := b.done[id]; !done || len(b.holders[id]) != 1 {
			b.t.Errorf("%s is done: %v, and was claimed by %d agents", id, done, len(b.holders[id]))
		}
	}
}

// claimer is an agent.
type claimer struct {
	*claimBoard
	group     *group
	number    int
	id, token string

	end   sync.Mutex
	abort context.CancelFunc // of what it is doing
}

func newClaimer(t *testing.T, g *group, b *claimBoard, number int) *claimer {
	t.Helper()
	a := &claimer{claimBoard: b, group: g, number: number, abort: func() {}}
	at := g.members[number%len(g.members)].url
	var join, given struct{ Token string }
	var joined struct {
		Agent  struct{ ID string }
		Secret string
	}
	must(t, "POST", at+"/gateway/tokens", nil, &join)
	must(t, "POST", at+"/gateway/agents", map[string]string{"token": join.Token, "label": fmt.Sprint("builder-", number)}, &joined)
	must(t, "POST", at+"/gateway/agents/"+joined.Agent.ID+"/assign", map[string]string{"project": "alpha"}, nil)
	status, err := call(t.Context(), "POST", at+"/gateway/agents/"+joined.Agent.ID+"/token", joined.Secret, nil, &given)
	if err != nil || status != 201 {
		t.Fatalf("%d, %v", status, err)
	}
	a.id, a.token = joined.Agent.ID, given.Token
	return a
}

// kill makes the agent lose its connection and all that it knows but its identity.
func (a *claimer) kill() {
	a.end.Lock()
	defer a.end.Unlock()
	a.abort()
}

func (a *claimer) run(ctx context.Context) {
	for ctx.Err() == nil {
		a.end.Lock()
		life, abort := context.WithCancel(ctx)
		a.abort = abort
		a.end.Unlock()
		a.live(life)
		abort()
	}
}

// live works until the agent is killed, or has lost track of what it did.
func (a *claimer) live(ctx context.Context) {
	id, ok := a.own(ctx)
	for round := rand.N(100); ok && ctx.Err() == nil; round++ {
		if id == "" {
			if id, ok = a.claim(ctx, round); !ok || id == "" {
				continue
			}
			a.got(a.number, id)
		}
		if ok = a.complete(ctx, round, id); ok {
			id = ""
		}
	}
	pause(ctx, 50*time.Millisecond)
}

func (a *claimer) gateway(n int) string { return a.group.members[n%len(a.group.members)].url }

// own returns a story that the agent has claimed, "" if it has none.
func (a *claimer) own(ctx context.Context) (id string, ok bool) {
	var answer struct {
		Projects map[string]struct {
			Stages []struct {
				Name  string
				Items []struct {
					StoryID string `json:"story_id"`
					Claim   *struct {
						AgentID string `json:"agent_id"`
					}
				}
			}
		}
	}
	pause(ctx, 1200*time.Millisecond) // a change on one gateway shows on the others within a second
	status, err := call(ctx, "GET", a.gateway(rand.N(3))+"/api/gateway/pipeline", a.token, nil, &answer)
	if err != nil || status != 200 || len(answer.Projects["alpha"].Stages) == 0 {
		return "", false
	}
	for _, stage := range answer.Projects["alpha"].Stages[:2] {
		for _, item := range stage.Items {
			if item.Claim != nil && item.Claim.AgentID == a.id {
				a.got(a.number, item.StoryID)
				return item.StoryID, true
			}
		}
	}
	return "", true
}

// claim claims the next story, over the API and MCP in turn.
func (a *claimer) claim(ctx context.Context, round int) (id string, ok bool) {
	type story struct {
		StoryID string `json:"story_id"`
	}
	if round%2 == 0 {
		var claimed story
		status, text := a.send(ctx, "POST", a.gateway(round)+"/api/gateway/projects/alpha/stories/claim", `{"wait":"2s"}`)
		ok = status == 204 || status == 200 && json.Unmarshal(text, &claimed) == nil
		return claimed.StoryID, ok
	}
	var answer struct {
		Result struct {
			IsError           bool
			StructuredContent struct{ Story *story }
		}
	}
	const tool = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"claim_story","arguments":{"project":"alpha","wait":"2s"}}}`
	status, text := a.send(ctx, "POST", a.gateway(round)+"/mcp", tool)
	if status != 200 || json.Unmarshal(text, &answer) != nil || answer.Result.IsError {
		return "", false
	}
	if story := answer.Result.StructuredContent.Story; story != nil {
		id = story.StoryID
	}
	return id, true
}

// send returns the status 0 if there is no answer.
func (a *claimer) send(ctx context.Context, method, url, body string) (status int, text []byte) {
	request, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return 0, nil
	}
	request.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Authorization": {"Bearer " + a.token}}
	response, err := client.Do(request)
	if err != nil {
		return 0, nil
	}
	defer response.Body.Close()
	if text, err = io.ReadAll(response.Body); err != nil {
		return 0, nil
	}
	return response.StatusCode, text
}

// complete moves a story to the last stage. It returns false if it is not sure that it has.
func (a *claimer) complete(ctx context.Context, round int, id string) bool {
	address := a.gateway(round+1) + "/api/gateway/projects/alpha/stories/" + id
	var story struct{ Stage, Version string }
	status, text := a.send(ctx, "GET", address, "")
	if status != 200 || json.Unmarshal(text, &story) != nil || story.Version == "" {
		return false
	}
	status, _ = a.send(ctx, "PATCH", address, fmt.Sprintf(`{"version":%q,"stage":"3_done"}`, story.Version))
	return status == 200
}
