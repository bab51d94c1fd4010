package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"switchyard/internal/waittest"
)

// workCommand is what the agents run for each story: it asks about one, and blocks another until a file is there.
const workCommand = `if [ "$SWITCHYARD_STORY_ID" = 11_story ] && [ -z "${SWITCHYARD_ANSWER-}" ]; then echo 'painting'; echo 'which "colour"?'; exit 3; fi
echo "$SWITCHYARD_STORY_ID ${SWITCHYARD_ANSWER-} $(cat)" >> "$0/worked"
if [ "$SWITCHYARD_STORY_ID" = 7_story ] && ! [ -e "$0/key" ]; then printf 'looking\nneeds "a key" & more'; exit 1; fi
echo done`

// TestThreeAgentsWorkOnABoard: three that run contrib/work-on-stories.sh finish 30 stories, or 12. About one of these they ask, and another is
// blocked, and goes on once it is unblocked.
func TestThreeAgentsWorkOnABoard(t *testing.T) {
	onEachEngine(t, func(t *testing.T, on engine) {
		count := 30
		if on != "" { // what the agents do is the same
			count = 12
		}
		c := newClaimed(t, on, count)
		waittest.Program(t, "jq")
		script, err := filepath.Abs("../../contrib/work-on-stories.sh")
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		for n := range 3 {
			g := c.gateways[n%len(c.gateways)]
			label := fmt.Sprintf("builder-%d", n+1)
			var join struct{ Token string }
			_, text := g.do(t, "POST", "/gateway/tokens", "")
			if err := json.Unmarshal([]byte(text), &join); err != nil {
				t.Fatal(err)
			}
			agent := launch(t, switchyard(t, filepath.Join(dir, label), "agent", "--gateway", g.url, "--label", label, "--state", "DIR/state",
				"--token", join.Token, "--", "sh", script, "sh", "-c", workCommand, dir))
			agent.endWithCommand(t)
		}
		waittest.Until(t, "three agents", func() bool {
			var agents []struct {
				ID              string
				AssignedProject *string `json:"assigned_project"`
			}
			_, text := c.gateways[0].do(t, "GET", "/gateway/agents", "")
			if err := json.Unmarshal([]byte(text), &agents); err != nil {
				t.Fatal(err)
			}
			for _, a := range agents {
				if a.AssignedProject == nil {
					c.gateways[0].do(t, "POST", "/gateway/agents/"+a.ID+"/assign", `{"project":"alpha"}`)
				}
			}
			return len(agents) == 3
		})
		done := func() int {
			files, _ := filepath.Glob(filepath.Join(c.stories.dir, "5_done", "*.md"))
			return len(files)
		}
		c.answer("11_story", `which "colour"?`, "dark blue")
		waittest.Until(t, "all stories but one done", func() bool { return done() == count-1 })
		blocked := c.story(c.gateways[0], "7_story")
		if blocked.Stage != "2_current" || blocked.Blocked != `needs "a key" & more` || blocked.Claim == nil || !strings.HasPrefix(blocked.Claim.By, "builder-") {
			t.Errorf("%+v", blocked)
		}
		if err := os.WriteFile(filepath.Join(dir, "key"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(c.path("2_current", 7), []byte("# Unblocked by hand\n"), 0o600); err != nil { // its agent still has it
			t.Fatal(err)
		}
		waittest.Until(t, "all stories done", func() bool { return done() == count })
		worked, err := os.ReadFile(filepath.Join(dir, "worked"))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(worked), "\n11_story dark blue ") {
			t.Errorf("the answer is missing: %s", worked)
		}
		for i := range count {
			want := 1
			if i == 7 {
				want = 2
			}
			if n := strings.Count("\n"+string(worked), fmt.Sprintf("\n%d_story ", i)); n != want {
				t.Errorf("%d_story was worked on %d times", i, n)
			}
		}
	})
}

// answer waits for an agent's question about a story, and answers it.
func (c *claimed) answer(story, prompt, answer string) {
	c.Helper()
	g, id := c.gateways[0], ""
	waittest.Until(c.T, "a question about "+story, func() bool {
		var open struct {
			Questions []struct {
				ID, Kind, Prompt string
				StoryID          *string `json:"story_id"`
				AskedBy          string  `json:"asked_by"`
			}
		}
		_, text := g.do(c.T, "GET", "/api/gateway/questions?project=alpha", "")
		if err := json.Unmarshal([]byte(text), &open); err != nil {
			c.Fatalf("%v: %s", err, text)
		}
		for _, q := range open.Questions {
			if q.Prompt != prompt || q.Kind != "text" || q.StoryID == nil || *q.StoryID != story || !strings.Contains(q.AskedBy, "builder-") {
				c.Errorf("asked: %+v", q)
			}
			id = q.ID
		}
		return id != ""
	})
	body, _ := json.Marshal(map[string]string{"value": answer})
	if status, text := g.do(c.T, "POST", "/api/gateway/questions/"+id+"/answer", string(body)); status != 200 {
		c.Fatalf("answered: %d %s", status, text)
	}
}

// TestAKilledAgentGoesOnWithItsStory: kill -9 leaves the claim and the question, and the agent finds both by its identity, on another
// gateway, too. Nobody else gets the story meanwhile.
func TestAKilledAgentGoesOnWithItsStory(t *testing.T) {
	onEachEngine(t, func(t *testing.T, on engine) {
		c := newClaimed(t, on, 2)
		waittest.Program(t, "jq")
		script, err := filepath.Abs("../../contrib/work-on-stories.sh")
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		const asks = `echo "$SWITCHYARD_STORY_ID ${SWITCHYARD_ANSWER-asks}" >> "$0/worked"; [ -n "${SWITCHYARD_ANSWER-}" ] && exit; echo "which one?"; exit 3`
		var join struct{ Token string }
		if _, text := c.gateways[0].do(t, "POST", "/gateway/tokens", ""); json.Unmarshal([]byte(text), &join) != nil {
			t.Fatal(text)
		}
		begin := func(g *process, more ...string) *process {
			args := append([]string{"agent", "--gateway", g.url, "--label", "builder-1", "--state", "DIR/state"}, more...)
			return launch(t, switchyard(t, dir, append(args, "--", "sh", script, "sh", "-c", asks, dir)...))
		}
		worked := func() []string {
			text, _ := os.ReadFile(filepath.Join(dir, "worked"))
			return strings.Fields(string(text))
		}
		killed := begin(c.gateways[0], "--token", join.Token)
		var agents []struct{ ID string }
		waittest.Until(t, "the agent", func() bool {
			_, text := c.gateways[0].do(t, "GET", "/gateway/agents", "")
			return json.Unmarshal([]byte(text), &agents) == nil && len(agents) == 1
		})
		id := agents[0].ID
		c.gateways[0].do(t, "POST", "/gateway/agents/"+id+"/assign", `{"project":"alpha"}`)
		waittest.Until(t, "it asks", func() bool {
			_, text := c.gateways[0].do(t, "GET", "/api/gateway/questions", "")
			return strings.Contains(text, "which one?")
		})
		killed.killHard()
		other := c.as(1, "zoe", "operator")
		if next := c.claim(other, ""); next == nil || next.StoryID != "1_story" {
			t.Errorf("another one's next story: %+v", next)
		}
		c.wantStatus(other, "POST", "/claim", `{"story_id":"0_story"}`, 409, "builder-1")
		agent := begin(c.gateways[len(c.gateways)-1])
		agent.endWithCommand(t)
		waittest.Until(t, "it works again", func() bool { return len(worked()) == 4 })
		c.answer("0_story", "which one?", "blue")
		waittest.Until(t, "it has done its story", func() bool {
			_, err := os.Stat(c.path("5_done", 0))
			return err == nil
		})
		if got := strings.Join(worked(), " "); got != "0_story asks 0_story asks 0_story blue" {
			t.Errorf("worked on %s", got)
		}
	})
}

// TestWhatEndedWellNeverRunsAgain: a story whose move is refused is blocked with the refusal's words, and one whose block is refused,
// too, stays claimed; after 75 it is free again, and after that, and after three failures at once, the agent waits.
func TestWhatEndedWellNeverRunsAgain(t *testing.T) {
	t.Parallel()
	c := newClaimed(t, "", 7)
	waittest.Program(t, "jq")
	script, err := filepath.Abs("../../contrib/work-on-stories.sh")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	const sleep = "#!/bin/sh\n[ \"$1\" -ge 60 ] || exec /bin/sleep \"$1\"\necho \"$1\" >> " // only shorter pauses are waited for
	if err := os.WriteFile(filepath.Join(dir, "sleep"), []byte(sleep+dir+"/pauses\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(c.path("5_done", 0), 0o700); err != nil { // in its way
		t.Fatal(err)
	}
	const command = `echo "$SWITCHYARD_STORY_ID" >> "$0/worked"
case $SWITCHYARD_STORY_ID in
1_story) mkdir "$0/once" 2>/dev/null || exit 0; echo "limit reached"; exit 75 ;;
[2345]_story) echo "no such tool"; exit 1 ;;
esac`
	var join struct{ Token string }
	if _, text := c.gateways[0].do(t, "POST", "/gateway/tokens", ""); json.Unmarshal([]byte(text), &join) != nil {
		t.Fatal(text)
	}
	cmd := switchyard(t, dir, "agent", "--gateway", c.gateways[0].url, "--label", "builder-2", "--state", "DIR/state", "--token", join.Token,
		"--", "sh", script, "sh", "-c", command, dir)
	agent := launch(t, withEnv(cmd, "PATH="+dir+":"+os.Getenv("PATH")))
	agent.endWithCommand(t)
	waittest.Until(t, "the agent", func() bool {
		var agents []struct{ ID, Label string }
		_, text := c.gateways[0].do(t, "GET", "/gateway/agents", "")
		if err := json.Unmarshal([]byte(text), &agents); err != nil {
			t.Fatal(err)
		}
		for _, a := range agents {
			if a.Label == "builder-2" {
				c.gateways[0].do(t, "POST", "/gateway/agents/"+a.ID+"/assign", `{"project":"alpha"}`)
				return true
			}
		}
		return false
	})
	read := func(name string) string {
		text, _ := os.ReadFile(filepath.Join(dir, name))
		return strings.Join(strings.Fields(string(text)), " ")
	}
	waittest.Until(t, "all stories tried", func() bool { _, err := os.Stat(c.path("5_done", 6)); return err == nil })
	if got := read("worked"); got != "0_story 1_story 1_story 2_story 3_story 4_story 5_story 6_story" {
		t.Errorf("worked on %s", got)
	}
	if got := read("pauses"); got != "60 60 120" {
		t.Errorf("waited %s", got)
	}
	if s := c.story(c.gateways[0], "0_story"); !strings.Contains(s.Blocked, "it is done, but cannot be moved to 5_done: ") || s.Claim == nil {
		t.Errorf("%+v", s)
	}
}
