package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"switchyard/internal/gittest"
	"switchyard/internal/waittest"
)

const claimAdmin = "a-token-of-the-administrator"

// claimed is a board with stories that agents share, on one gateway or, with PostgreSQL, two.
type claimed struct {
	*testing.T
	stories
	gateways []*process
}

func newClaimed(t *testing.T, on engine, count int) *claimed {
	t.Helper()
	dir := t.TempDir()
	c := &claimed{T: t, stories: newStories(t, filepath.Join(dir, "alpha", "work"), count)}
	for _, stage := range []string{"4_merge", "5_done"} {
		if err := os.Mkdir(filepath.Join(c.stories.dir, stage), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	up := withEnv(switchyard(t, dir, "up", "DIR/alpha/work", "--listen=localhost:0", "--data=DIR/data"), "SWITCHYARD_ADMIN_TOKEN="+claimAdmin)
	c.gateways = append(c.gateways, on.start(t, up))
	if on != "" {
		second := switchyard(t, dir, "gateway", "--listen=localhost:0", "--data=DIR/second", "--poll-interval=100ms")
		c.gateways = append(c.gateways, on.start(t, withEnv(second, "SWITCHYARD_ADMIN_TOKEN="+claimAdmin)))
	}
	for _, g := range c.gateways {
		g.bearer = claimAdmin
		g.eventually(t, "/api/gateway/pipeline", `"0_story"`)
	}
	return c
}

// as returns a caller with a token of its own, on the n-th gateway.
func (c *claimed) as(n int, name, role string) *process {
	c.Helper()
	g := c.gateways[n%len(c.gateways)]
	_, text := g.do(c.T, "POST", "/api/gateway/tokens", fmt.Sprintf(`{"name":%q,"role":%q}`, name, role))
	var made struct{ Token string }
	if err := json.Unmarshal([]byte(text), &made); err != nil || made.Token == "" {
		c.Fatalf("%v: %s", err, text)
	}
	return &process{url: g.url, bearer: made.Token}
}

const storiesURL = "/api/gateway/projects/alpha/stories"

// agent is an agent whose command has a token, on the n-th gateway.
func (c *claimed) agent(n int, label string) (id string, command *process) {
	c.Helper()
	g := c.gateways[n%len(c.gateways)]
	decode := func(method, path, body, bearer string, into any) {
		caller := &process{url: g.url, bearer: bearer}
		status, text := caller.do(c.T, method, path, body)
		if err := json.Unmarshal([]byte(text), into); err != nil || status/100 != 2 {
			c.Fatalf("%s: %d %s", path, status, text)
		}
	}
	var join, given struct{ Token string }
	var joined struct {
		Agent  struct{ ID string }
		Secret string
	}
	decode("POST", "/gateway/tokens", "", claimAdmin, &join)
	decode("POST", "/gateway/agents", fmt.Sprintf(`{"token":%q,"label":%q}`, join.Token, label), "", &joined)
	decode("POST", "/gateway/agents/"+joined.Agent.ID+"/assign", `{"project":"alpha"}`, claimAdmin, &struct{}{})
	decode("POST", "/gateway/agents/"+joined.Agent.ID+"/token", "", joined.Secret, &given)
	return joined.Agent.ID, &process{url: g.url, bearer: given.Token}
}

type claimedStory struct {
	StoryID string `json:"story_id"`
	Stage   string
	Version string
	Blocked string
	Claim   *struct {
		By      string
		AgentID *string `json:"agent_id"`
		SinceMS int64   `json:"since_ms"`
	}
	History []struct {
		ToStage string `json:"to_stage"`
		By, Via *string
	}
}

// claim claims a story and returns it, nil if none is free.
func (c *claimed) claim(by *process, body string) *claimedStory {
	c.Helper()
	status, text := by.do(c.T, "POST", storiesURL+"/claim", body)
	story := &claimedStory{}
	switch {
	case status == 204 && text == "":
		return nil
	case status != 200 || json.Unmarshal([]byte(text), story) != nil:
		c.Fatalf("claim %s: %d %s", body, status, text)
	}
	return story
}

func (c *claimed) story(on *process, id string) (story claimedStory) {
	c.Helper()
	status, text := on.do(c.T, "GET", storiesURL+"/"+id, "")
	if err := json.Unmarshal([]byte(text), &story); err != nil || status != 200 {
		c.Fatalf("%s: %d %s", id, status, text)
	}
	return story
}

func (c *claimed) wantStatus(by *process, method, path, body string, status int, says string) {
	c.Helper()
	got, text := by.do(c.T, method, storiesURL+path, body)
	if got != status || !strings.Contains(text, says) {
		c.Errorf("%s %s %s: %d %s, want %d %s", method, path, body, got, text, status, says)
	}
}

// TestOneOfManyGetsAStory: of callers that claim at the same time, on all gateways, each gets stories that nobody else gets, in order.
func TestOneOfManyGetsAStory(t *testing.T) {
	onEachEngine(t, func(t *testing.T, on engine) {
		const count, callers = 40, 8
		c := newClaimed(t, on, count)
		var mu sync.Mutex
		got := map[string]int{}
		var group sync.WaitGroup
		for n := range callers {
			by := c.as(n, fmt.Sprintf("coder-%d", n), "operator")
			group.Go(func() {
				for last := -1; ; {
					story := c.claim(by, "")
					if story == nil {
						return
					}
					var number int
					_, _ = fmt.Sscan(strings.TrimSuffix(story.StoryID, "_story"), &number)
					if story.Stage != "2_current" || story.Claim == nil || story.Claim.By != fmt.Sprintf("coder-%d", n) || number < last {
						t.Errorf("caller %d after %d: %+v", n, last, story)
					}
					last = number
					mu.Lock()
					got[story.StoryID]++
					mu.Unlock()
				}
			})
		}
		group.Wait()
		if len(got) != count {
			t.Errorf("%d stories were claimed", len(got))
		}
		for id, times := range got {
			if times > 1 {
				t.Errorf("%s was claimed %d times", id, times)
			}
		}
	})
}

// TestWhoMayDoWhatWithAClaim goes through the rules for holders, operators and agents.
func TestWhoMayDoWhatWithAClaim(t *testing.T) {
	onEachEngine(t, func(t *testing.T, on engine) {
		c := newClaimed(t, on, 5)
		zoe, viewer := c.as(1, "zoe", "operator"), c.as(0, "guest", "viewer")
		id, builder := c.agent(0, "builder-1")
		_, other := c.agent(1, "builder-1") // of the same name
		c.wantStatus(viewer, "POST", "/claim", "", 403, "operator")
		c.wantStatus(builder, "POST", "/claim", `{"from":"nowhere"}`, 400, "from")
		c.wantStatus(builder, "POST", "/claim", `{"to":"nowhere"}`, 400, "to")
		c.wantStatus(builder, "POST", "/claim", `{"wait":"long"}`, 400, "wait")
		c.wantStatus(builder, "POST", "/claim", `{"story_id":"99_story"}`, 404, "99_story")
		first := c.claim(builder, `{}`)
		if first == nil || first.StoryID != "0_story" || first.Stage != "2_current" || first.Claim.By != "builder-1" || *first.Claim.AgentID != id || first.Claim.SinceMS == 0 {
			t.Fatalf("%+v", first)
		}
		if again := c.claim(builder, `{"story_id":"0_story","to":"3_qa"}`); again.Stage != "2_current" || again.Claim.SinceMS != first.Claim.SinceMS {
			t.Errorf("its own again: %+v", again)
		}
		move := func(stage, version, more string) string {
			return fmt.Sprintf(`{"version":%q,"stage":%q%s}`, version, stage, more)
		}
		c.wantStatus(other, "POST", "/claim", `{"story_id":"0_story"}`, 409, "claimed by builder-1")
		c.wantStatus(other, "POST", "/claim", `{"story_id":"0_story","take_over":true}`, 403, "operator")
		c.wantStatus(other, "PATCH", "/0_story", move("3_qa", first.Version, ""), 409, "claimed by builder-1")
		c.wantStatus(other, "PATCH", "/0_story", move("3_qa", first.Version, `,"take_over":true`), 403, "operator")
		c.wantStatus(other, "DELETE", "/0_story/claim", "", 403, "claimed by builder-1")
		c.wantStatus(builder, "PATCH", "/0_story", move("2_current", first.Version, ""), 409, "already there")
		c.wantStatus(builder, "PATCH", "/0_story", `{"stage":"2_current"}`, 400, "version")
		c.wantStatus(zoe, "PATCH", "/0_story", move("3_qa", first.Version, `,"take_over":"yes"`), 400, "take_over")
		c.wantStatus(zoe, "PATCH", "/0_story", move("3_qa", first.Version, ""), 409, "claimed by builder-1")
		c.wantStatus(zoe, "POST", "/claim", `{"story_id":"0_story"}`, 409, "claimed by builder-1")
		taken := c.claim(zoe, `{"story_id":"0_story","take_over":true,"to":"3_qa"}`)
		if taken.Claim.By != "zoe" || taken.Claim.AgentID != nil || taken.Stage != "3_qa" {
			t.Errorf("taken over: %+v", taken)
		}
		c.wantStatus(builder, "PATCH", "/0_story", move("4_merge", taken.Version, ""), 409, "claimed by zoe")
		c.wantStatus(zoe, "PATCH", "/0_story", move("4_merge", taken.Version, ""), 200, "4_merge")
		c.wantStatus(zoe, "DELETE", "/0_story/claim", "", 204, "")
		c.wantStatus(builder, "DELETE", "/0_story/claim", "", 204, "") // there is none
		if story := c.story(c.gateways[0], "0_story"); story.Claim != nil {
			t.Errorf("released: %+v", story.Claim)
		}
		c.wantStatus(zoe, "POST", "/claim", `{"worktree":"/nowhere"}`, 400, "worktree")
		if story := c.story(c.gateways[0], "1_story"); story.Claim != nil {
			t.Errorf("claimed for a work tree that is none: %+v", story.Claim)
		}
		named := c.claim(builder, `{"story_id":"3_story"}`)
		if named.Stage != "1_backlog" {
			t.Errorf("a named story moves: %+v", named)
		}
		waittest.Until(t, "the next claims that are passed over", func() bool {
			next := c.claim(zoe, "")
			return next != nil && next.StoryID == "1_story"
		})
		if _, text := c.gateways[0].do(t, "GET", "/api/gateway/pipeline", ""); !strings.Contains(text, `"claim":{"by":"builder-1","agent_id":"`+id+`","since_ms":`) || !strings.Contains(text, `"claim":null`) {
			t.Errorf("the pipeline: %s", text)
		}
		c.wantHistory()
		c.wantStatus(zoe, "PATCH", "/3_story", move("3_qa", named.Version, ""), 409, "claimed by builder-1")
		c.wantStatus(zoe, "PATCH", "/3_story", move("3_qa", named.Version, `,"take_over":true`), 200, "3_qa")
		if story := c.story(zoe, "3_story"); story.Claim == nil || story.Claim.By != "zoe" {
			t.Errorf("a change does not pass the claim on: %+v", story.Claim)
		}
	})
}

// wantHistory checks the history and the audit after TestWhoMayDoWhatWithAClaim.
func (c *claimed) wantHistory() {
	c.Helper()
	g := c.gateways[0]
	waittest.Until(c.T, "the moves in the history", func() bool { return len(c.story(g, "0_story").History) == 3 })
	var moves []string
	for _, e := range c.story(g, "0_story").History {
		if e.By == nil || e.Via == nil {
			c.Fatalf("%+v", e)
		}
		moves = append(moves, e.ToStage+" "+*e.By+" "+*e.Via)
	}
	if got := strings.Join(moves, ", "); got != "2_current builder-1 api, 3_qa zoe api, 4_merge zoe api" {
		c.Errorf("history: %s", got)
	}
	_, audit := g.do(c.T, "GET", "/api/gateway/audit?limit=200", "")
	for _, want := range []string{
		`"action":"story.claimed","subject":"alpha/0_story","detail":"claim: none → builder-1; stage: 1_backlog → 2_current"`,
		`"action":"story.claimed","subject":"alpha/0_story","detail":"claim: builder-1 → zoe; stage: 2_current → 3_qa"`,
		`"action":"story.released","subject":"alpha/0_story","detail":"claim: zoe → none"`,
	} {
		if strings.Count(audit, want) != 1 {
			c.Errorf("the audit has %s %d times", want, strings.Count(audit, want))
		}
	}
}

// TestAClaimEnds in the done stage, by file and through the gateway, and with the agent's identity or the named token.
func TestAClaimEnds(t *testing.T) {
	onEachEngine(t, func(t *testing.T, on engine) {
		c := newClaimed(t, on, 4)
		id, builder := c.agent(1, "builder-1")
		for range 4 {
			c.claim(builder, `{"resume":false}`)
		}
		ended := func(what, story string) {
			t.Helper()
			for _, g := range c.gateways {
				waittest.Until(t, what, func() bool { return c.story(g, story).Claim == nil })
			}
		}
		work := c.stories.dir
		for _, stage := range []string{"3_qa", "4_merge", "5_done"} { // git keeps no empty directories
			if err := os.WriteFile(filepath.Join(work, stage, ".keep"), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		gittest.Git(t, work, "init", "-q")
		old := c.story(c.gateways[0], "3_story").Version
		if err := os.WriteFile(filepath.Join(work, "2_current", "3_story.md"), []byte("# Changed\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		waittest.Until(t, "a look at the board since git came", func() bool { return c.story(c.gateways[0], "3_story").Version != old })
		gittest.Git(t, work, "add", ".")
		gittest.Git(t, work, "commit", "-qm", "board")
		gittest.Git(t, work, "clone", "-q", ".", work+"-side") // in a work tree it would have moved
		gittest.Git(t, work+"-side", "mv", "2_current/3_story.md", "5_done/")
		gittest.Git(t, work+"-side", "commit", "-qm", "done")
		gittest.Git(t, work+"-side", "push", "-q", "origin", "HEAD:refs/heads/side")
		for _, shown := range []string{"5_done", "2_current", "5_done"} { // what a checkout shows ends no claim, nor is it told
			gittest.Git(t, work, "checkout", "-q", "--detach", map[string]string{"5_done": "side", "2_current": "main"}[shown])
			waittest.Until(t, shown, func() bool { return c.story(c.gateways[0], "3_story").Stage == shown })
		}
		gittest.Git(t, work, "checkout", "-q", "main")
		waittest.Until(t, "2_current", func() bool { return c.story(c.gateways[0], "3_story").Stage == "2_current" })
		if s := c.story(c.gateways[0], "3_story"); s.Claim == nil || len(s.History) > 1 {
			t.Errorf("after checkouts: %+v", s)
		}
		c.move(0, "2_current", "5_done")
		ended("a file in the done stage", "0_story")
		if e := c.story(c.gateways[0], "0_story").History; len(e) > 0 && e[len(e)-1].ToStage == "5_done" && e[len(e)-1].By != nil {
			t.Errorf("somebody has moved the file: %+v", e)
		}
		version := c.story(builder, "1_story").Version
		c.wantStatus(builder, "PATCH", "/1_story", fmt.Sprintf(`{"version":%q,"stage":"5_done"}`, version), 200, "5_done")
		ended("a move to the done stage", "1_story")
		c.move(2, "2_current", "3_qa")
		c.wantStatus(c.gateways[0], "POST", "/claim", `{"story_id":"2_story"}`, 409, "builder-1")
		if status, text := c.gateways[0].do(t, "DELETE", "/gateway/agents/"+id, ""); status != 204 {
			t.Fatalf("%d %s", status, text)
		}
		ended("an agent that is removed", "2_story")
		ended("an agent that is removed", "3_story")
		c.claim(c.as(0, "script", "operator"), `{"story_id":"2_story"}`)
		_, tokens := c.gateways[0].do(t, "GET", "/api/gateway/tokens", "")
		_, id, _ = strings.Cut(tokens, `"id":"`)
		id, _, _ = strings.Cut(id, `"`)
		c.gateways[0].do(t, "DELETE", "/api/gateway/tokens/"+id, "")
		ended("a token that is revoked", "2_story")
	})
}

// TestAWaitingClaimGetsANewFile: it is woken, on each gateway, when a file appears, sooner than it would look again by itself.
// The fastest of several files counts: the machine does much else. TestAWaitingClaimIsFast of make stress has the promised time.
func TestAWaitingClaimGetsANewFile(t *testing.T) {
	onEachEngine(t, func(t *testing.T, on engine) {
		c := newClaimed(t, on, 1)
		holder := c.as(0, "holder", "operator")
		if story := c.claim(holder, `{"to":"1_backlog"}`); story.Stage != "1_backlog" {
			t.Fatalf("%+v", story)
		}
		const byItself, tries = 4 * time.Second, 10
		for n := range c.gateways {
			by := c.as(n, "waiter", "operator")
			best := time.Hour
			for i := 0; best > byItself && i < tries || i < 2; i++ {
				story := make(chan *claimedStory, 1)
				go func() { story <- c.claim(by, `{"wait":"40s"}`) }()
				waittest.Until(t, "the claim is held", func() bool {
					g := c.gateways[n]
					return g.metric(t, "switchyard_http_requests_in_flight") >= 2 // with the one that asks
				})
				written := time.Now()
				if err := os.WriteFile(c.path("1_backlog", 100*n+7+i), []byte("# new\n"), 0o644); err != nil {
					t.Fatal(err)
				}
				if got := <-story; got == nil {
					t.Errorf("gateway %d, file %d was not claimed", n, i)
				}
				best = min(best, time.Since(written))
			}
			if best > byItself {
				t.Errorf("gateway %d: the fastest of %d files was claimed after %v", n, tries, best)
			}
		}
		began := time.Now()
		if story := c.claim(holder, `{"wait":"300ms"}`); story != nil || time.Since(began) < 300*time.Millisecond {
			t.Errorf("nothing is free: %+v", story)
		}
	})
}
