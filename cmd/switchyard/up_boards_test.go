package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestUpServesRepositoriesOfOneNameSideBySide: a board keeps its name, whatever it is served with.
func TestUpServesRepositoriesOfOneNameSideBySide(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for i, path := range []string{"acme/web", "other/web/work", "third/acme/web"} {
		stages(t, filepath.Join(dir, path), []string{"1_story_a", "2_story_b", "3_story_c"}[i])
	}
	up := func(args ...string) *process {
		return start(t, switchyard(t, dir, append([]string{"up", "--listen=localhost:0", "--data=DIR/data"}, args...)...))
	}
	want := func(p *process, names ...string) {
		t.Helper()
		active, urls := p.registry(t)
		for _, name := range names {
			if urls[name] == "" {
				t.Errorf("no project %s in %v", name, urls)
			}
		}
		if len(urls) != len(names) || active != names[0] {
			t.Errorf("active %s, projects %v", active, urls)
		}
		p.stop(t, syscall.SIGTERM)
	}
	want(up("DIR/other/web"), "web")
	want(up("DIR/acme/web", "DIR/other/web", "DIR/other/web"), "web", "acme/web")
	want(up("DIR/third/acme/web"), "web", "acme/web", "acme/web-2")
	want(up("--name= shop ", "DIR/acme/web"), "web", "acme/web", "acme/web-2", "shop")
	p := up("DIR/acme/web")
	if !strings.Contains(p.said, "Project shop is served at") {
		t.Errorf("the name of --name is forgotten: %s", p.said)
	}
}

func TestUpServesAgainWhatTheLastStartServed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	stages(t, filepath.Join(dir, "alpha"), "1_story_login")
	stages(t, filepath.Join(dir, "beta"), "2_story_pay")
	args := []string{"up", "--listen=localhost:0", "--data=DIR/data"}
	p := start(t, switchyard(t, dir, append(args, "DIR/alpha", "DIR/beta")...))
	p.stop(t, syscall.SIGTERM)
	p = start(t, switchyard(t, dir, "up", "--listen=localhost:0", "--data=DIR/data"))
	if !strings.Contains(p.said, "Serving what the last start served: "+filepath.Join(dir, "alpha")+" "+filepath.Join(dir, "beta")+"\n") {
		t.Errorf("it says %s", p.said)
	}
	p.eventually(t, "/api/gateway/pipeline", `"1_story_login"`, `"2_story_pay"`)
}

func TestUpServesTheOthersBesideADirectoryWithoutABoard(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	stages(t, filepath.Join(dir, "alpha"), "1_story_login")
	if err := os.Mkdir(filepath.Join(dir, "empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	p := start(t, switchyard(t, dir, "up", "--listen=localhost:0", "--data=DIR/data", "DIR/empty", "DIR/alpha", "DIR/none"))
	if _, urls := p.registry(t); len(urls) != 1 || urls["alpha"] == "" {
		t.Errorf("projects %v", urls)
	}
	for _, line := range []string{"Not served: " + dir + "/empty is empty: it has no board\n", "Not served: " + dir + "/none does not exist"} {
		if !strings.Contains(p.stderr.String(), line) {
			t.Errorf("%q is not in %s", line, &p.stderr)
		}
	}
	if entries, err := os.ReadDir(filepath.Join(dir, "empty")); err != nil || len(entries) > 0 {
		t.Errorf("the empty directory has %v, %v", entries, err)
	}
}

// TestUpAssignsItsAgent to the first project, also one that an earlier start has left without.
func TestUpAssignsItsAgent(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	stages(t, filepath.Join(dir, "alpha"), "1_story_login")
	for range 2 {
		p := start(t, switchyard(t, dir, "up", "--listen=localhost:0", "--data=DIR/data", "--agent=builder", "DIR/alpha", "--", "sh", "-c", "sleep 60"))
		p.eventually(t, "/gateway/agents", `"label":"builder"`, `"assigned_project":"alpha"`)
		p.stop(t, syscall.SIGTERM)
	}
}
