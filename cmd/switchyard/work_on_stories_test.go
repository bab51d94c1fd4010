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

// workCommand is what the agents run for each story: it blocks one until a file is there.
const workCommand = `echo "$SWITCHYARD_STORY_ID $(cat)" >> "$0/worked"
if [ "$SWITCHYARD_STORY_ID" = 7_story ] && ! [ -e "$0/key" ]; then printf 'looking\nneeds "a key" & more'; exit 1; fi
echo done`

// TestThreeAgentsWorkOnABoard: three that run contrib/work-on-stories.sh finish 30 stories. One of these is blocked, and goes on once
// it is unblocked.
func TestThreeAgentsWorkOnABoard(t *testing.T) {
	onEachEngine(t, func(t *testing.T, on engine) {
		const count = 30
		c := newClaimed(t, on, count)
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
			launch(t, switchyard(t, filepath.Join(dir, label), "agent", "--gateway", g.url, "--label", label, "--state", "DIR/state",
				"--token", join.Token, "--", "sh", script, "sh", "-c", workCommand, dir))
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
		waittest.Until(t, "all stories but one done", func() bool { return done() == count-1 })
		blocked := c.story(c.gateways[0], "7_story")
		if blocked.Stage != "2_current" || blocked.Blocked != `needs "a key" & more` || blocked.Claim == nil || !strings.HasPrefix(blocked.Claim.By, "builder-") {
			t.Errorf("%+v", blocked)
		}
		if err := os.WriteFile(filepath.Join(dir, "key"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		c.wantStatus(c.gateways[0], "PATCH", "/7_story", fmt.Sprintf(`{"version":%q,"blocked":null,"take_over":true}`, blocked.Version), 200, "")
		c.wantStatus(c.gateways[0], "DELETE", "/7_story/claim", "", 204, "")
		c.wantStatus(c.gateways[0], "PATCH", "/7_story", fmt.Sprintf(`{"version":%q,"stage":"1_backlog"}`, c.story(c.gateways[0], "7_story").Version), 200, "")
		waittest.Until(t, "all stories done", func() bool { return done() == count })
		worked, err := os.ReadFile(filepath.Join(dir, "worked"))
		if err != nil {
			t.Fatal(err)
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
