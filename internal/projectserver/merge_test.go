package projectserver_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"switchyard/internal/board"
	"switchyard/internal/feed"
	"switchyard/internal/gittest"
	"switchyard/internal/waittest"
)

// newMerging returns a project server that merges, with a branch that has work on 1_story in a work tree.
func newMerging(t *testing.T, o board.Options) (s shop, head string) {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
	o.AllowMerges, o.State = true, t.TempDir()
	s = newShop(t, o)
	s.in("story/1_story", "mv", "1_backlog/1_story.md", "2_current/")
	s.put("story/1_story", "code", "a\nb\nc\nd\n")
	s.in("story/1_story", "add", ".")
	s.in("story/1_story", "commit", "-qm", "work")
	s.ask("PATCH", "/api/stories/1_story", `{"version":"","stage":"2_current","worktree":"/"}`) // looks for work trees at once
	s.stands("1_story", "2_current", "story/1_story", "story/1_story")
	return s, s.in("story/1_story", "rev-parse", "HEAD")
}

func (s shop) merge(id, branch, head, more string) (int, string) {
	s.t.Helper()
	status, answer, _ := s.ask("POST", "/api/stories/"+id+"/merge", fmt.Sprintf(`{"branch":%q,"head":%q%s}`, branch, head, more))
	return status, answer
}

// state is all that may not differ after a merge that did not come about.
func (s shop) state() string {
	s.t.Helper()
	left, err := os.ReadDir(os.TempDir())
	if err != nil {
		s.t.Fatal(err)
	}
	var temporary []string
	for _, entry := range left {
		if strings.HasPrefix(entry.Name(), "switchyard-merge-") || strings.HasPrefix(entry.Name(), "switchyard-git-") {
			temporary = append(temporary, entry.Name())
		}
	}
	state := s.git("status", "--porcelain=v2", "--branch", "--untracked-files=all") + s.git("worktree", "list") + s.git("for-each-ref") + s.git("diff") + strings.Join(temporary, " ")
	_ = filepath.WalkDir(s.dir, func(path string, entry os.DirEntry, err error) error {
		if entry.Name() == ".git" {
			return filepath.SkipDir
		}
		text, _ := os.ReadFile(path)
		state += path + ":" + string(text) + "\n"
		return nil
	})
	return state
}

func TestAMergeTakesTheStoryAlong(t *testing.T) {
	s, head := newMerging(t, board.Options{})
	s.put("story/1_story", "not_committed", "x")
	s.write("other", "not committed, and in nobody's way")
	base := s.git("rev-parse", "HEAD")
	status, answer := s.merge("1_story", "story/1_story", head, "")
	merged := s.git("rev-parse", "HEAD")
	if status != 200 || answer != fmt.Sprintf(`{"merged":%q}`, merged) {
		t.Fatalf("%d %s", status, answer)
	}
	if got, want := s.git("log", "-1", "--format=%P|%an|%cn|%s"), base+" "+head+"|switchyard|switchyard|Merge branch 'story/1_story' for 1_story"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := s.git("diff", "--name-status", "-M", base, merged); got != "R100\t1_backlog/1_story.md\t4_done/1_story.md\nM\tcode" {
		t.Errorf("merged %q", got)
	}
	if got := s.git("status", "--porcelain"); got != "?? other" {
		t.Errorf("DIR has %q", got)
	}
	s.stands("1_story", "4_done", "", "main")
	if list := s.work("1_story"); len(list) != 1 || !list[0].Merged || list[0].Ahead != 0 {
		t.Errorf("%+v", list)
	}
	if got := s.events(); strings.Join(got, " ") != "1_story 2_current>4_done" {
		t.Errorf("events %q", got)
	}
	if status, answer := s.merge("1_story", "story/1_story", head, ""); status != 409 || !strings.Contains(answer, "Already up to date") {
		t.Errorf("again: %d %s", status, answer)
	}
	if story := s.story("GET", "/api/stories/1_story", ""); story["merge_failure"] != nil {
		t.Errorf("its failure is %v", story["merge_failure"])
	}
	if got := s.git("worktree", "list", "--porcelain"); strings.Count(got, "worktree ") != 2 {
		t.Errorf("left: %s", got)
	}
}

// What DIR has uncommitted of the story's own file is part of the merge; its other copies go.
func TestAMergeTakesTheStorysOwnChangesAlong(t *testing.T) {
	for name, prepare := range map[string]func(s shop){
		"moved by hand": func(s shop) { s.git("mv", "1_backlog/2_story.md", "3_qa/2_story.md") },
		"moved by us": func(s shop) {
			s.story("PATCH", "/api/stories/2_story", fmt.Sprintf(`{"version":%q,"stage":"4_done"}`, s.version("2_story")))
		},
		"never committed": func(s shop) { s.git("rm", "-q", "--cached", "1_backlog/2_story.md"); s.git("commit", "-qm", "out") },
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := newMerging(t, board.Options{})
			s.put("story/1_story", "1_backlog/2_story.md", "---\nname: Story 2\n---\n\n2 unlike the others 2\n\nmore of the branch\n")
			s.in("story/1_story", "commit", "-qam", "text")
			if name == "never committed" {
				s.in("story/1_story", "reset", "-q", "--hard", "HEAD~1")
			}
			prepare(s)
			s.story("PATCH", "/api/stories/2_story", fmt.Sprintf(`{"version":%q,"blocked":"key"}`, s.version("2_story")))
			if name == "never committed" {
				s.in("story/1_story", "rebase", "-q", "main")
			}
			status, answer := s.merge("2_story", "story/1_story", s.in("story/1_story", "rev-parse", "HEAD"), "")
			if got := s.git("status", "--porcelain"); status != 200 || got != "" {
				t.Fatalf("%d %s, DIR has %s", status, answer, got)
			}
			text, err := os.ReadFile(filepath.Join(s.dir, "4_done/2_story.md"))
			if !strings.Contains(string(text), "blocked_reason: key") || strings.Contains(string(text), "more of the branch") != (name != "never committed") {
				t.Errorf("%s, %v", text, err)
			}
			if got := s.git("ls-files", "*/2_story.md"); got != "4_done/2_story.md" {
				t.Errorf("copies %s", got)
			}
		})
	}
}

// A merge that does not come about leaves DIR as it was, and says why.
func TestAMergeThatIsRefusedChangesNothing(t *testing.T) {
	hook := func(name string) func(s shop) {
		return func(s shop) {
			path := filepath.Join(s.dir, ".git", "hooks", name)
			if err := os.WriteFile(path, []byte("#!/bin/sh\nseq 100\necho \"the hook says no\" >&2\nexit 3\n"), 0o777); err != nil {
				s.t.Fatal(err)
			}
		}
	}
	const failed = true
	for name, test := range map[string]struct {
		prepare func(s shop)
		check   string
		id      string
		more    string
		status  int
		says    string
		failed  bool
	}{
		"a conflict":            {func(s shop) { s.write("code", "A\nb\nc\nX\n"); s.git("commit", "-qam", "in the way") }, "", "", "", 409, "CONFLICT (content): Merge conflict in code", failed},
		"a hook":                {hook("pre-merge-commit"), "", "", "", 409, "the hook says no", failed},
		"a hook for messages":   {hook("commit-msg"), "", "", "", 409, "the hook says no", failed},
		"a check":               {nil, "ls; git log -1 --format=%s; test -z \"$SWITCHYARD_X$GIT_DIR\"; exit 1", "", "", 409, "4_done\ncode\nnew\nMerge branch", failed},
		"what is not committed": {func(s shop) { s.write("code", "mine\n") }, "exit 1", "", "", 409, "would be overwritten by merge", !failed},
		"an untracked file":     {func(s shop) { s.write("new", "mine\n"); s.write(".git/info/exclude", "new\n") }, "exit 1", "", "", 409, "would be overwritten by merge", !failed},
		"a filter":              {func(s shop) { s.write(".git/info/attributes", "new filter=lfs\n") }, "exit 1", "", "", 409, "new has a filter", !failed},
		"another tip":           {func(s shop) { s.in("story/1_story", "commit", "-q", "--allow-empty", "-m", "more") }, "", "", "", 409, "is not the tip", !failed},
		"another branch":        {nil, "", "", `,"into":"release"`, 409, "is on main, not on release", !failed},
		"no branch":             {func(s shop) { s.git("checkout", "-q", "--detach") }, "", "", "", 409, "on no branch", !failed},
		"a bisect":              {func(s shop) { s.git("bisect", "start") }, "", "", "", 409, "bisect", !failed},
		"an unknown story":      {nil, "", "9_story", "", 404, "", !failed},
		"an unknown stage":      {nil, "", "", `,"stage":"../../x"`, 400, "there is no stage", !failed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("SWITCHYARD_X", "secret")
			s, _ := newMerging(t, board.Options{MergeCheck: test.check})
			s.put("story/1_story", "new", "x\n")
			s.in("story/1_story", "add", ".")
			s.in("story/1_story", "commit", "-qm", "more")
			head := s.in("story/1_story", "rev-parse", "HEAD")
			if test.prepare != nil {
				test.prepare(s)
			}
			before := s.state()
			id := test.id
			if id == "" {
				id = "1_story"
			}
			status, answer := s.merge(id, "story/1_story", head, test.more)
			if status != test.status || !strings.Contains(answer, test.says) || strings.Count(answer, "\n") > 40 {
				t.Errorf("%d %s", status, answer)
			}
			if after := s.state(); after != before {
				t.Errorf("before %s\nafter %s", before, after)
			}
			story := s.story("GET", "/api/stories/1_story", "")
			failure, _ := story["merge_failure"].(string)
			if (failure != "") != test.failed || test.failed && !strings.Contains(answer, failure) {
				t.Errorf("merge failure %q, answered %q", failure, answer)
			}
			_, events, _ := s.ask("GET", "/api/events", "")
			if strings.Count(events, "merge_failure") > 0 != test.failed {
				t.Errorf("events %s", events)
			}
		})
	}
}

// TestWhatIsNoBranchHasNoTip, whatever it is called.
func TestWhatIsNoBranchHasNoTip(t *testing.T) {
	s, head := newMerging(t, board.Options{})
	for _, branch := range []string{"none", "story/1_story~0", "--help", "\x00", "story/1_story\x00", strings.Repeat("x", 1000), strings.Repeat("x", 200<<10)} {
		body := encode(t, map[string]string{"branch": branch, "head": head})
		if status, answer, _ := s.ask("POST", "/api/stories/1_story/merge", body); status != 409 || !strings.Contains(answer, "is not the tip") {
			t.Errorf("%.20q: %d %s", branch, status, answer)
		}
	}
}

// Where the story stands in no work tree of its own, the failure is kept by us, until a merge succeeds or somebody clears it.
func TestAFailureIsKeptUntilItIsOver(t *testing.T) {
	s, head := newMerging(t, board.Options{})
	s.write("code", "mine\n")
	s.git("commit", "-qam", "in the way")
	before := s.state()
	status, said := s.merge("2_story", "story/1_story", head, "")
	failure := func() any { return s.story("GET", "/api/stories/2_story", "")["merge_failure"] }
	if item, _ := s.item("2_story"); status != 409 || failure() == nil || item.MergeFailure == nil || *item.MergeFailure != failure() || !strings.Contains(said, *item.MergeFailure) {
		t.Errorf("%d %s, %v, %v", status, said, failure(), item.MergeFailure)
	}
	if after := s.state(); after != before {
		t.Errorf("before %s\nafter %s", before, after)
	}
	patch := func(value string) {
		s.story("PATCH", "/api/stories/2_story", fmt.Sprintf(`{"version":%q,"merge_failure":%s}`, s.version("2_story"), value))
	}
	was := failure()
	if patch("null"); failure() != nil {
		t.Error("it is not cleared")
	}
	if patch(encode(t, was)); failure() != was {
		t.Errorf("restored %v", failure())
	}
	s.in("story/1_story", "merge", "-q", "-s", "ours", "main")
	if status, said := s.merge("2_story", "story/1_story", s.in("story/1_story", "rev-parse", "HEAD"), `,"stage":"3_qa"`); status != 200 || failure() != nil {
		t.Errorf("%d %s, %v", status, said, failure())
	}
	if _, stage := s.item("2_story"); stage != "3_qa" || s.git("status", "--porcelain") != "" {
		t.Errorf("in %s", stage)
	}
}

// No program of the repository runs for a merge but its hooks.
func TestAMergeRunsHooksAndNothingElse(t *testing.T) {
	s, head := newMerging(t, board.Options{})
	s.write("code", "0\na\nb\nc\n")
	s.git("commit", "-qam", "elsewhere")
	s.git("config", "branch.main.mergeOptions", "--squash -s evil")
	s.git("config", "merge.ff", "false")
	s.git("config", "commit.gpgSign", "true")
	gittest.Traps(t, s.dir)
	if err := os.RemoveAll(filepath.Join(s.dir, ".git", "hooks")); err != nil {
		t.Fatal(err)
	}
	s.git("-c", "core.hooksPath=/dev/null", "config", "--unset-all", "core.hooksPath")
	status, answer := s.merge("1_story", "story/1_story", head, "")
	if status != 409 || !strings.Contains(answer, "has a filter, which is not run") {
		t.Errorf("%d %s", status, answer)
	}
	if err := os.WriteFile(filepath.Join(s.dir, ".git", "info", "attributes"), []byte("* diff=evil merge=evil\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	waittest.Until(t, "the story", func() bool { _, stage := s.item("1_story"); return stage != "" })
	if status, answer := s.merge("1_story", "story/1_story", head, ""); status != 200 {
		t.Errorf("%d %s", status, answer)
	}
}

func TestWithoutItsFlagNothingIsMerged(t *testing.T) {
	s := newShop(t, board.Options{})
	head := s.git("rev-parse", "HEAD")
	if status, answer := s.merge("1_story", "main", head, ""); status != 403 || !strings.Contains(answer, "--allow-merges") {
		t.Errorf("%d %s", status, answer)
	}
}

// Boards of other tools have the stage written as their tool does, or not at all where it follows from boxes.
func TestAMergeOnBoardsOfOtherTools(t *testing.T) {
	for _, test := range []struct {
		layout, id, stage string
		files             map[string]string
		own, uncommitted  string
		status            int
		wants             string
	}{
		{
			"backlog.md", "task-1", "", map[string]string{
				"backlog/config.yml":              "project_name: x\nstatuses: [\"To Do\", \"In Progress\", \"Done\"]\n",
				"backlog/tasks/task-1 - Login.md": "---\nid: task-1\ntitle: Login\nstatus: To Do\n---\n\nText\n",
			}, "backlog/tasks/task-1 - Login.md", "---\nid: task-1\ntitle: Login\nstatus: In Progress\n---\n\nText, and more\n", 200, "status: Done",
		},
		{
			"bmad", "1-1-login", "", map[string]string{
				"docs/sprint-status.yaml": "development_status:\n  1-1-login: in-progress\n  1-2-pay: backlog\n",
				"docs/1-1-login.md":       "# Story 1.1: Login\n",
			}, "docs/sprint-status.yaml", "", 200, "1-1-login: done\n",
		},
		{"spec-kit", "001-login", "", map[string]string{"specs/001-login/spec.md": "# Login\n", "specs/001-login/tasks.md": "- [ ] a\n"}, "", "", 200, ""},
		{"spec-kit", "001-login", `,"stage":"4_done"`, map[string]string{"specs/001-login/spec.md": "# Login\n", "specs/001-login/tasks.md": "- [ ] a\n"}, "", "", 400, ""},
	} {
		t.Run(test.layout+test.stage, func(t *testing.T) {
			s := shop{&stories{t: t, dir: t.TempDir(), feed: feed.New(time.Now), trees: true}, t.TempDir()}
			for name, text := range test.files {
				s.write(name, text)
			}
			s.git("init", "-q", "-b", "main")
			s.git("add", ".")
			s.git("commit", "-qm", "board")
			s.in("work", "status")
			s.put("work", "code", "x\n")
			s.in("work", "add", ".")
			s.in("work", "commit", "-qm", "work")
			if test.uncommitted != "" {
				s.write(test.own, test.uncommitted)
			}
			s.openBoard(board.Options{Dir: s.dir, Layout: test.layout, AllowWrites: true, AllowMerges: true})
			status, answer := s.merge(test.id, "work", s.in("work", "rev-parse", "HEAD"), test.stage)
			if status != test.status || s.git("status", "--porcelain") != "" {
				t.Fatalf("%d %s, DIR has %s", status, answer, s.git("status", "--porcelain"))
			}
			if test.own != "" {
				if text := s.git("show", "HEAD:"+test.own); !strings.Contains(text+"\n", test.wants) || test.uncommitted != "" && !strings.Contains(text, "and more") {
					t.Errorf("%s", text)
				}
			}
		})
	}
}
