package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"switchyard/internal/gittest"
	"switchyard/internal/waittest"
)

// TestAnAgentWorksInWorkTrees: each story has one of its own, waits for its review there, is done again when it is sent
// back, and once it is merged its tree and branch go. The project's work tree is clean throughout.
func TestAnAgentWorksInWorkTrees(t *testing.T) {
	t.Parallel()
	waittest.Program(t, "jq")
	script, err := filepath.Abs("../../contrib/work-on-stories.sh")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	shop := filepath.Join(dir, "shop")
	newStories(t, filepath.Join(shop, "work"), 2)
	for _, stage := range []string{"2_current", "3_qa", "5_done"} {
		if err := os.MkdirAll(filepath.Join(shop, "work", stage), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(shop, "work", stage, ".keep"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	gittest.Git(t, shop, "init", "-q")
	gittest.Git(t, shop, "add", ".")
	gittest.Git(t, shop, "commit", "-qm", "board")
	g := start(t, switchyard(t, dir, "up", "--listen=localhost:0", "--data=DIR/data", "--allow-merges", "--commit-moves", "DIR/shop"))
	g.eventually(t, "/api/gateway/pipeline", `"0_story"`)
	const command = `echo "$SWITCHYARD_STORY_ID $SWITCHYARD_NOTE" >>"$0/worked"
echo "$SWITCHYARD_NOTE" >>"made-$SWITCHYARD_STORY_ID"
git add . && git -c user.name=builder -c user.email=b@example.org commit -qm work`
	var join struct{ Token string }
	if _, text := g.do(t, "POST", "/gateway/tokens", ""); json.Unmarshal([]byte(text), &join) != nil {
		t.Fatal(text)
	}
	agent := launch(t, switchyard(t, dir, "agent", "--gateway", g.url, "--label", "builder-1", "--state", "DIR/state", "--token", join.Token,
		"--worktrees", "DIR/trees", "--", "sh", script, "sh", "-c", command, dir))
	agent.endWithCommand(t)
	waittest.Until(t, "the agent", func() bool {
		var agents []struct{ ID string }
		if _, text := g.do(t, "GET", "/gateway/agents", ""); json.Unmarshal([]byte(text), &agents) != nil {
			t.Fatal(text)
		}
		for _, a := range agents {
			g.do(t, "POST", "/gateway/agents/"+a.ID+"/assign", `{"project":"shop"}`)
		}
		return len(agents) == 1
	})
	type made struct {
		Stage    string
		Worktree *string
		Claim    *struct{}
		Work     []struct {
			Branch, Head string
			Ahead        int
		}
	}
	// awaits waits until a story stands in its tree with so many commits, for anybody, and returns the head of its branch.
	awaits := func(id, stage string, ahead int) (head string) {
		t.Helper()
		waittest.Until(t, "the work on "+id, func() bool {
			var story made
			if _, text := g.do(t, "GET", "/api/gateway/projects/shop/stories/"+id, ""); json.Unmarshal([]byte(text), &story) != nil {
				t.Fatal(text)
			}
			if story.Claim != nil || len(story.Work) != 1 || story.Work[0].Ahead != ahead || story.Stage != stage || story.Worktree == nil {
				return false
			}
			head = story.Work[0].Head
			return *story.Worktree == filepath.Join(dir, "trees", id) && story.Work[0].Branch == "story/"+id
		})
		if status := gittest.Git(t, shop, "status", "--porcelain"); status != "" {
			t.Errorf("the project's work tree has %s", status)
		}
		return head
	}
	post := func(id, what, body string) {
		t.Helper()
		if status, text := g.do(t, "POST", "/api/gateway/projects/shop/stories/"+id+"/"+what, body); status != 200 {
			t.Fatalf("%s %s: %d %s", id, what, status, text)
		}
	}
	post("1_story", "review", `{"verdict":"sent_back","note":"in red","head":"`+awaits("1_story", "2_current", 2)+`"}`)
	for id, ahead := range map[string]int{"0_story": 2, "1_story": 5} { // moved, made; moved back, moved, made
		head := awaits(id, "2_current", ahead)
		post(id, "merge", `{"branch":"story/`+id+`","head":"`+head+`"}`)
	}
	waittest.Until(t, "no work trees", func() bool {
		left, err := os.ReadDir(filepath.Join(dir, "trees"))
		return err == nil && len(left) == 0 && gittest.Git(t, shop, "branch", "--list", "story/*") == ""
	})
	worked, err := os.ReadFile(filepath.Join(dir, "worked"))
	if got := strings.Join(strings.Fields(string(worked)), " "); got != "0_story 1_story 1_story in red" {
		t.Errorf("worked on %s, %v", got, err)
	}
	if text, err := os.ReadFile(filepath.Join(shop, "made-1_story")); string(text) != "\nin red\n" {
		t.Errorf("made %q, %v", text, err)
	}
	if status := gittest.Git(t, shop, "status", "--porcelain"); status != "" {
		t.Errorf("the project's work tree has %s", status)
	}
}
