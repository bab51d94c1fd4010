//go:build stress

package stress

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
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

// TestManyAgentsShareABoard: 16 agents claim and finish 10,000 stories over three gateways, over the API and MCP, while gateways and
// agents are killed with kill -9. Nobody gets a story that another one has, and none is lost: an agent that was killed finds what it has
// claimed by its identity.
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
	used := func() (sum time.Duration) {
		for _, m := range g.members {
			sum += m.processorTime()
		}
		return sum
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
	warm, before, usedBefore, serverBefore := time.Now(), b.finished.Load(), used(), b.server.processorTime()
	if !until(10*time.Minute, func() bool { return reached(undisturbed) }) {
		t.Fatalf("only %d stories are finished", b.finished.Load())
	}
	count := b.finished.Load() - before
	rate := float64(count) / time.Since(warm).Seconds()
	t.Logf("undisturbed: %.0f claimed, moved and finished a second (%d wanted); each took %v of the gateways' processor time and %v of the "+
		"project server's", rate, claimRate, (used()-usedBefore)/time.Duration(count), (b.server.processorTime()-serverBefore)/time.Duration(count))
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

// TestAWaitingClaimIsFast: from a new file to the answer of a claim that waits for it 100 ms, on the leader and elsewhere.
func TestAWaitingClaimIsFast(t *testing.T) {
	program := build(t)
	g := newGroupOf(t, program, "", nil)
	b := newClaimBoard(t, program, 0)
	must(t, "POST", g.members[0].url+"/api/gateway/projects", map[string]string{"name": "alpha", "url": b.url}, nil)
	a := newClaimer(t, g, b, 0)
	for n, m := range g.members {
		var all []time.Duration
		for i := range 20 {
			claimed := make(chan int, 1)
			go func() {
				status, _ := call(t.Context(), "POST", m.url+"/api/gateway/projects/alpha/stories/claim", a.work.Token,
					map[string]any{"wait": "20s", "resume": false}, nil)
				claimed <- status
			}()
			pause(t.Context(), 300*time.Millisecond) // until it is held
			began := time.Now()
			path := filepath.Join(b.dir, "1_backlog", fmt.Sprintf("%d_story.md", 100*n+i))
			if err := os.WriteFile(path, []byte("# A story\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			if status := <-claimed; status != 200 {
				t.Fatalf("gateway %d, story %d: %d", n, i, status)
			}
			all = append(all, time.Since(began))
		}
		slices.Sort(all)
		t.Logf("gateway %d: median %v, longest %v", n, all[len(all)/2], all[len(all)-1])
		if median := all[len(all)/2]; median > 100*time.Millisecond {
			t.Errorf("gateway %d: the median is %v", n, median)
		}
	}
}

// claimBoard is a project server's directory, and what agents have got of it.
type claimBoard struct {
	t        *testing.T
	server   *server
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
	b.server = newServer(t, "project", loopback(t, 40), program, "project", "--name", "alpha", "--work", b.dir, "--allow-writes")
	b.server.start()
	b.url = b.server.url
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

// claimer is an agent, which is a process that may be killed.
type claimer struct {
	*claimBoard
	number int
	work   worker

	mu      sync.Mutex
	current *exec.Cmd
}

func newClaimer(t *testing.T, g *group, b *claimBoard, number int) *claimer {
	t.Helper()
	a := &claimer{claimBoard: b, number: number}
	for _, m := range g.members {
		a.work.Gateways = append(a.work.Gateways, m.url)
	}
	at := a.work.gateway(number)
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
	a.work.ID, a.work.Token = joined.Agent.ID, given.Token
	return a
}

// kill is kill -9: the agent loses all that it knows but its identity.
func (a *claimer) kill() {
	a.mu.Lock()
	defer a.mu.Unlock()
	_ = a.current.Process.Kill() // it may have ended
}

// run starts the agent again and again, and notes which stories it says that it has.
func (a *claimer) run(ctx context.Context) {
	identity, err := json.Marshal(a.work)
	if err != nil {
		a.t.Error(err)
	}
	for ctx.Err() == nil {
		cmd := exec.CommandContext(ctx, os.Args[0])
		cmd.Env = append(os.Environ(), workerEnv+"="+string(identity))
		cmd.Stderr = os.Stderr
		said, err := cmd.StdoutPipe()
		if err == nil {
			a.mu.Lock()
			a.current, err = cmd, cmd.Start()
			a.mu.Unlock()
		}
		if err != nil {
			if ctx.Err() == nil {
				a.t.Error(err)
			}
			return
		}
		for lines := bufio.NewScanner(said); lines.Scan(); {
			a.got(a.number, lines.Text())
		}
		_ = cmd.Wait() // killed, or at a loss
		pause(ctx, 50*time.Millisecond)
	}
}
