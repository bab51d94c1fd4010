package main

import (
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
