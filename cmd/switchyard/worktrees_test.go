package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"switchyard/internal/gittest"
)

// TestTheFirstAnswerShowsStoriesWhereWorkTreesHaveThem, however slow git is: a gateway would take anything else for a move.
func TestTheFirstAnswerShowsStoriesWhereWorkTreesHaveThem(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	repository, tree, bin := filepath.Join(dir, "shop"), filepath.Join(dir, "tree"), filepath.Join(dir, "bin")
	stages(t, repository, "1_story_login")
	gittest.Git(t, repository, "init", "-q")
	gittest.Git(t, repository, "add", ".")
	gittest.Git(t, repository, "commit", "-qm", "board")
	gittest.Git(t, repository, "worktree", "add", "-qb", "story/1", tree)
	if err := os.Rename(filepath.Join(tree, "2_current"), filepath.Join(tree, "3_qa")); err != nil {
		t.Fatal(err)
	}
	git, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(bin, "git"), []byte("#!/bin/sh\nsleep 0.1\nexec "+git+` "$@"`+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	p := start(t, withEnv(switchyard(t, dir, "project", "--name=shop", "--work=DIR/shop", "--listen=localhost:0"), "PATH="+bin+":"+os.Getenv("PATH")))
	if _, text := p.do(t, "GET", "/api/pipeline", ""); !strings.Contains(text, `"worktree":"`+tree+`"`) {
		t.Errorf("at first %s", text)
	}
}

// TestStoriesOfOneIDInWorkTreesAreClaimedEach through the API and MCP, under the ids that the board of all trees gives
// them, though each tree has its own under the same.
func TestStoriesOfOneIDInWorkTreesAreClaimedEach(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	repository := filepath.Join(dir, "alpha")
	put := func(name, text string) {
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o777), os.WriteFile(name, []byte(text), 0o666)); err != nil {
			t.Fatal(err)
		}
	}
	put(filepath.Join(repository, "backlog", "config.yml"), "statuses: [To Do, In Progress, Done]\n")
	put(filepath.Join(repository, "backlog", "tasks", "task-1 - Old.md"), "---\nid: task-1\ntitle: Old\nstatus: Done\n---\n")
	gittest.Git(t, repository, "init", "-q")
	gittest.Git(t, repository, "add", ".")
	gittest.Git(t, repository, "commit", "-qm", "board")
	file := func(title string) string {
		return filepath.Join(dir, title, "backlog", "tasks", "task-5 - "+title+".md")
	}
	for i, title := range []string{"Pay", "Login"} {
		gittest.Git(t, repository, "worktree", "add", "-q", filepath.Join(dir, title))
		put(file(title), fmt.Sprintf("---\nid: task-5\ntitle: %s\nstatus: To Do\ncreated_date: '2026-05-0%d'\n---\n", title, i+1))
	}
	p := start(t, switchyard(t, dir, "up", "DIR/alpha", "--listen=localhost:0", "--data=DIR/data"))
	p.eventually(t, "/api/gateway/pipeline", `"story_id":"task-5~2"`)
	status, text := p.do(t, "POST", storiesURL+"/claim", `{"story_id":"task-5~2","to":"3_in_progress"}`)
	if status != 200 || !strings.Contains(text, `"worktree":"`+filepath.Join(dir, "Login")+`"`) || !strings.Contains(text, `"story_id":"task-5~2"`) {
		t.Errorf("%d %s", status, text)
	}
	text = p.tool("claim_story", `{"project":"alpha","story_id":"task-5","to":"done","worktree":"`+filepath.Join(dir, "Pay")+`"}`)
	if !strings.Contains(text, `\"story_id\":\"task-5\"`) || !strings.Contains(text, `\"claim\":{`) {
		t.Error(text)
	}
	for title, status := range map[string]string{"Login": "In Progress", "Pay": "Done"} {
		if text, err := os.ReadFile(file(title)); err != nil || !strings.Contains(string(text), "status: "+status) {
			t.Errorf("%v %s", err, text)
		}
	}
	if status, text := p.do(t, "POST", storiesURL+"/claim", ""); status != 204 {
		t.Errorf("a third: %d %s", status, text)
	}
}

// TestWorkTreesOfOneRepositoryAreOneProject unless nobody wants that; one within another is no stage of its board, and
// one that is gone is told once.
func TestWorkTreesOfOneRepositoryAreOneProject(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	repository, within := filepath.Join(dir, "alpha"), filepath.Join(dir, "alpha", "7_within")
	stages(t, repository, "1_story_login")
	gittest.Git(t, repository, "init", "-q")
	gittest.Git(t, repository, "add", ".")
	gittest.Git(t, repository, "commit", "-qm", "board")
	for _, tree := range []string{within, filepath.Join(dir, "beta"), filepath.Join(dir, "gone")} {
		gittest.Git(t, repository, "worktree", "add", "-q", tree)
	}
	if err := errors.Join(os.Rename(filepath.Join(within, "2_current"), filepath.Join(within, "3_qa")), os.RemoveAll(filepath.Join(dir, "gone"))); err != nil {
		t.Fatal(err)
	}
	gittest.Git(t, within, "add", "--all")
	gittest.Git(t, within, "commit", "-qm", "for 1_story_login")
	up := func(flags ...string) (p *process, projects int) {
		p = start(t, switchyard(t, dir, append([]string{"up", "DIR/alpha", "DIR/beta", "--listen=localhost:0"}, flags...)...))
		_, urls := p.registry(t)
		return p, len(urls)
	}
	p, projects := up("--data=DIR/data")
	p.eventually(t, "/api/gateway/pipeline", `"worktree":"`+within+`"`)
	said := p.stderr.String()
	if projects != 1 || !strings.Contains(said, "are work trees of one repository: one project, served from the first") ||
		strings.Count(said, "a work tree is missing") != 1 {
		t.Errorf("%d projects: %s", projects, said)
	}
	p, projects = up("--data=DIR/data2", "--no-worktrees")
	p.eventually(t, "/api/gateway/pipeline", `"work":{"branch":"7_within","worktree":null`)
	if _, text := p.do(t, "GET", "/api/gateway/pipeline", ""); projects != 2 || strings.Contains(text, `"worktree":"`) || strings.Contains(text, `"name":"7_within"`) {
		t.Errorf("%d projects: %s", projects, text)
	}
}
