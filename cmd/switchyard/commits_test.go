package main

import (
	"path/filepath"
	"syscall"
	"testing"

	"switchyard/internal/gittest"
)

// TestMovesAreCommitsByWhoeverMadeThem through the gateway, with the flag of up, also beside one that runs, and of project.
func TestMovesAreCommitsByWhoeverMadeThem(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"alpha", "beta", "gamma"} {
		repository := filepath.Join(dir, name)
		stages(t, repository, "1_story_login")
		gittest.Git(t, repository, "init", "-q")
		gittest.Git(t, repository, "add", ".")
		gittest.Git(t, repository, "commit", "-qm", "board")
	}
	g := start(t, switchyard(t, dir, "up", "--listen=localhost:0", "--data=DIR/data", "--commit-moves", "DIR/alpha"))
	launch(t, switchyard(t, dir, "up", "--data=DIR/data", "--commit-moves", "DIR/beta"))
	p := start(t, switchyard(t, dir, "project", "--name=gamma", "--work=DIR/gamma", "--listen=localhost:0", "--allow-writes", "--commit-moves"))
	g.do(t, "POST", "/api/gateway/projects", `{"name":"gamma","url":"`+p.url+`"}`)
	g.eventually(t, "/api/gateway/pipeline", `"alpha"`, `"beta"`, `"gamma"`)
	for _, name := range []string{"alpha", "beta", "gamma"} {
		status, text := g.do(t, "POST", "/api/gateway/projects/"+name+"/stories", `{"name":"Pay"}`)
		repository := filepath.Join(dir, name)
		if got := gittest.Git(t, repository, "log", "-1", "--format=%an %cn %s"); got != "admin switchyard 2_story_pay: created in 2_current" {
			t.Errorf("%s: %q after %d %s", name, got, status, text)
		}
		if got := gittest.Git(t, repository, "status", "--porcelain"); got != "" {
			t.Errorf("%s: %s", name, got)
		}
	}
	p.stop(t, syscall.SIGTERM)
}
