package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"switchyard/internal/gittest"
)

// TestFiveAgentsWorkInWorkTrees: each story is done once, in a tree of its own, reviewed, one of them sent back and done again, and all
// are merged through the gateways. The project's own work tree has nothing uncommitted at any time.
func TestFiveAgentsWorkInWorkTrees(t *testing.T) {
	onEachEngine(t, func(t *testing.T, on engine) {
		dir := t.TempDir()
		repository := filepath.Join(dir, "alpha")
		put := func(name, text string) {
			if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		for _, stage := range []string{"1_backlog", "2_current", "3_qa", "4_merge", "5_done"} {
			put(filepath.Join(repository, stage, ".keep"), "")
		}
		for i := range 5 {
			put(filepath.Join(repository, "1_backlog", fmt.Sprintf("%d_story.md", i)), fmt.Sprintf("# Story %d\n", i))
		}
		gittest.Git(t, repository, "init", "-q")
		gittest.Git(t, repository, "add", ".")
		gittest.Git(t, repository, "commit", "-qm", "board")
		c := &claimed{T: t}
		up := switchyard(t, dir, "up", "DIR/alpha", "--allow-merges", "--listen=localhost:0", "--data=DIR/data")
		c.gateways = append(c.gateways, on.start(t, withEnv(up, "SWITCHYARD_ADMIN_TOKEN="+claimAdmin)))
		if on != "" {
			second := switchyard(t, dir, "gateway", "--listen=localhost:0", "--data=DIR/second", "--poll-interval=100ms")
			c.gateways = append(c.gateways, on.start(t, withEnv(second, "SWITCHYARD_ADMIN_TOKEN="+claimAdmin)))
		}
		for _, g := range c.gateways {
			g.bearer = claimAdmin
			g.eventually(t, "/api/gateway/pipeline", `"0_story"`)
		}
		clean := func(when string) {
			t.Helper()
			if got := gittest.Git(t, repository, "status", "--porcelain"); got != "" {
				t.Errorf("%s: %s", when, got)
			}
		}
		type story struct {
			ID      string `json:"story_id"`
			Stage   string
			Version string
			Review  *struct{ Verdict, Note string }
		}
		want := func(p *process, method, path, body string, into any) {
			t.Helper()
			status, text, err := p.ask(method, path, body)
			if err != nil || status != 200 || json.Unmarshal([]byte(text), into) != nil {
				t.Errorf("%s %s: %d %s, %v", path, body, status, text, err)
			}
		}
		tree := func(id string) string { return filepath.Join(dir, "trees", id) }
		// work does what an agent does with a story in its tree, and leaves it for a review.
		work := func(p *process, s story, text string) {
			put(filepath.Join(tree(s.ID), s.ID+".txt"), text)
			gittest.Git(t, tree(s.ID), "add", ".")
			gittest.Git(t, tree(s.ID), "commit", "-qm", s.ID+": "+text)
			want(p, "GET", storiesURL+"/"+s.ID, "", &s)
			want(p, "PATCH", storiesURL+"/"+s.ID, fmt.Sprintf(`{"version":%q,"stage":"3_qa"}`, s.Version), &s)
			gittest.Git(t, tree(s.ID), "add", "-A")
			gittest.Git(t, tree(s.ID), "commit", "-qm", "for review")
		}
		agents := make([]*process, 5)
		got := make([]story, 5)
		var all sync.WaitGroup
		for n := range agents {
			_, agents[n] = c.agent(n, fmt.Sprintf("builder-%d", n))
			all.Go(func() { want(agents[n], "POST", storiesURL+"/claim", `{"to":"","resume":false}`, &got[n]) })
		}
		all.Wait()
		done := map[string]bool{}
		for n, s := range got {
			if done[s.ID] || s.Stage != "1_backlog" {
				t.Fatalf("%+v", got)
			}
			done[s.ID] = true
			gittest.Git(t, repository, "worktree", "add", "-q", "-b", "story/"+s.ID, tree(s.ID))
			want(agents[n], "GET", storiesURL+"/"+s.ID, "", &s)
			body := fmt.Sprintf(`{"version":%q,"stage":"2_current","worktree":%q}`, s.Version, tree(s.ID))
			want(agents[n], "PATCH", storiesURL+"/"+s.ID, body, &s)
			work(agents[n], s, "first")
		}
		clean("all work is done")
		head := func(id string) string { return gittest.Git(t, tree(id), "rev-parse", "HEAD") }
		verdict := func(n int, id, body string) (s story) {
			g := c.gateways[n%len(c.gateways)]
			g.eventually(t, storiesURL+"/"+id, `"head":"`+head(id)+`"`, `"stage":"3_qa"`)
			want(g, "POST", storiesURL+"/"+id+"/review", fmt.Sprintf(body, head(id)), &s)
			return s
		}
		back := got[2].ID
		if s := verdict(1, back, `{"verdict":"sent_back","head":%q,"note":"not enough"}`); s.Stage != "2_current" {
			t.Errorf("%+v", s)
		}
		var again story
		want(agents[2], "POST", storiesURL+"/claim", `{}`, &again)
		if again.ID != back || again.Review == nil || again.Review.Note != "not enough" {
			t.Errorf("%+v", again)
		}
		work(agents[2], again, "second")
		for n, s := range got {
			if s := verdict(n, s.ID, `{"verdict":"approved","head":%q}`); s.Stage != "4_merge" {
				t.Errorf("%+v", s)
			}
			clean(s.ID + " is approved")
			var merged struct{ Merged string }
			body := fmt.Sprintf(`{"branch":"story/%s","head":%q,"into":"main"}`, s.ID, head(s.ID))
			want(c.gateways[n%len(c.gateways)], "POST", storiesURL+"/"+s.ID+"/merge", body, &merged)
			if now := gittest.Git(t, repository, "rev-parse", "HEAD"); now != merged.Merged {
				t.Errorf("%s is merged as %s, not %s", s.ID, now, merged.Merged)
			}
			clean(s.ID + " is merged")
		}
		for i, g := range c.gateways {
			for _, s := range got {
				g.eventually(t, storiesURL+"/"+s.ID, `"stage":"5_done"`, `"claim":null`, `"merged":true`)
			}
			if _, text := g.do(t, "GET", "/api/gateway/events?limit=500", ""); strings.Count(text, `"to_stage":"5_done"`) != 5 || strings.Count(text, `"type":"story_reviewed"`) != 6 {
				t.Errorf("gateway %d: %s", i, text)
			}
		}
		for _, s := range got { // that the base has what was looked at is all that is left of it
			gittest.Git(t, repository, "worktree", "remove", "--force", tree(s.ID))
			gittest.Git(t, repository, "branch", "-d", "story/"+s.ID)
		}
		for _, g := range c.gateways {
			for _, s := range got {
				g.eventually(t, storiesURL+"/"+s.ID, `"work":[]`, `"verdict":"approved"`, `"outdated":false`)
			}
		}
		if text, _ := os.ReadFile(filepath.Join(repository, back+".txt")); string(text) != "second" {
			t.Errorf("%s", text)
		}
	})
}
