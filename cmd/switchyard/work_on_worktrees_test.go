package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"switchyard/internal/domain"
	"switchyard/internal/gittest"
	"switchyard/internal/waittest"
)

const (
	// makesAFile is what is done for a story in its work tree.
	makesAFile = `echo "$SWITCHYARD_NOTE" >>"made-$SWITCHYARD_STORY_ID"; git add . && git -c user.name=builder -c user.email=b@example.org commit -qm work`
	// sentBack is the story that is not good enough at first.
	sentBack = "1_story"
)

func TestAnAgentWorksInWorkTrees(t *testing.T) {
	t.Parallel()
	worksInWorkTrees(t, 1, 2, nil, "sh", "-c", makesAFile)
}

// TestFiveClaudesWorkInWorkTrees at a time, whose model has each of them commit by its tool.
func TestFiveClaudesWorkInWorkTrees(t *testing.T) {
	t.Parallel()
	claude := codingAgent(t, "claude")
	const agents = 5
	m := newModel(t, 1)
	m.tool, m.input, m.atOnce = "Bash", string(domain.EncodeJSON(map[string]string{"command": makesAFile, "description": "Make a file"})), agents
	worksInWorkTrees(t, agents, agents, []string{"ANTHROPIC_BASE_URL=" + m.URL, "ANTHROPIC_API_KEY=sk-ant-nobody", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1"},
		"sh", "-c", `exec "$0" -p "Work on $SWITCHYARD_STORY_ID" --allowedTools Bash`, claude)
	if m.begun != agents+1 {
		t.Errorf("%d conversations for %d stories, of which one was sent back", m.begun, agents)
	}
}

// worksInWorkTrees has agents work on stories by a command: each story has a work tree of its own, waits for its review there, is done
// again when it is sent back, and once it is merged its tree and branch go. The project's work tree is clean throughout.
func worksInWorkTrees(t *testing.T, agents, stories int, env []string, command ...string) {
	waittest.Program(t, "jq")
	script, err := filepath.Abs("../../contrib/work-on-stories.sh")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	shop := filepath.Join(dir, "shop")
	newStories(t, filepath.Join(shop, "work"), stories)
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
	for n := range agents {
		var join struct{ Token string }
		if _, text := g.do(t, "POST", "/gateway/tokens", ""); json.Unmarshal([]byte(text), &join) != nil {
			t.Fatal(text)
		}
		agent := switchyard(t, dir, "agent", "--gateway", g.url, "--label", fmt.Sprint("builder-", n), "--state", fmt.Sprint("DIR/state-", n), "--token", join.Token,
			"--worktrees", "DIR/trees", "--", "sh", script)
		agent.Args = append(agent.Args, command...)
		launch(t, withEnv(agent, append(env, fmt.Sprint("XDG_STATE_HOME=", dir, "/own-", n))...)).endWithCommand(t)
	}
	waittest.Until(t, "the agents", func() bool {
		var joined []struct{ ID string }
		if _, text := g.do(t, "GET", "/gateway/agents", ""); json.Unmarshal([]byte(text), &joined) != nil {
			t.Fatal(text)
		}
		for _, a := range joined {
			g.do(t, "POST", "/gateway/agents/"+a.ID+"/assign", `{"project":"shop"}`)
		}
		return len(joined) == agents
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
	post(sentBack, "review", `{"verdict":"sent_back","note":"in red","head":"`+awaits(sentBack, "2_current", 2)+`"}`)
	for n := range stories {
		id, ahead := fmt.Sprint(n, "_story"), 2 // moved, made
		if id == sentBack {
			ahead = 5 // and moved back, moved, made
		}
		head := awaits(id, "2_current", ahead)
		post(id, "review", `{"verdict":"approved","stage":"2_current","head":"`+head+`"}`)
		post(id, "merge", `{"branch":"story/`+id+`","head":"`+head+`"}`)
		want := "\n"
		if id == sentBack {
			want = "\nin red\n"
		}
		if text, err := os.ReadFile(filepath.Join(shop, "made-"+id)); string(text) != want {
			t.Errorf("%s has %q, %v", id, text, err)
		}
	}
	waittest.Until(t, "no work trees", func() bool {
		left, err := os.ReadDir(filepath.Join(dir, "trees"))
		return err == nil && len(left) == 0 && gittest.Git(t, shop, "branch", "--list", "story/*") == ""
	})
	if status := gittest.Git(t, shop, "status", "--porcelain"); status != "" {
		t.Errorf("the project's work tree has %s", status)
	}
}
