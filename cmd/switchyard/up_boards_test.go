package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"switchyard/internal/board"
	"switchyard/internal/domain"
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
	const stay = "No longer served, but registered until you remove them on the page Projects: "
	p := up("DIR/other/web")
	if strings.Contains(p.said, stay) {
		t.Errorf("it says %s", p.said)
	}
	want(p, "web")
	want(up("DIR/acme/web", "DIR/other/web", "DIR/other/web"), "web", "acme/web")
	want(up("DIR/third/acme/web"), "web", "acme/web", "acme/web-2")
	want(up("--name= shop ", "DIR/acme/web"), "web", "acme/web", "acme/web-2", "shop")
	p = up("DIR/acme/web")
	if !strings.Contains(p.said, stay+"acme/web-2, web\n") {
		t.Errorf("what is not served is not named: %s", p.said)
	}
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
	for _, line := range []string{"Not served, without a board: " + dir + "/empty\n", "Not served: " + dir + "/none does not exist"} {
		if !strings.Contains(p.stderr.String(), line) {
			t.Errorf("%q is not in %s", line, &p.stderr)
		}
	}
	if entries, err := os.ReadDir(filepath.Join(dir, "empty")); err != nil || len(entries) > 0 {
		t.Errorf("the empty directory has %v, %v", entries, err)
	}
}

// layoutTrees has a board of each layout that is found without being asked for: its files, where it is among them, and
// how many stories are in its stages.
var layoutTrees = map[string]struct {
	files    map[string]string
	at, says string
}{
	"stages": {
		map[string]string{"work/2_current/1_story_login.md": "# Log in\n", "work/5_done/.keep": ""}, "/work", "Current 1, Done 0",
	},
	"openspec": {
		map[string]string{"openspec/changes/add-login/tasks.md": "- [x] one\n- [ ] two\n"},
		"",
		"Draft 0, Planned 0, Doing 1, Done 0, Archived 0",
	},
	"spec-kit": {
		map[string]string{"specs/001-login/spec.md": "# Feature Specification: Log in\n", "specs/001-login/plan.md": ""},
		"",
		"Draft 0, Planned 1, Doing 0, Done 0",
	},
	"kiro": {
		map[string]string{".kiro/specs/login/tasks.md": "- [x] 1. one\n"}, "", "Draft 0, Planned 0, Doing 0, Done 1",
	},
	"backlog.md": {
		map[string]string{
			"backlog/config.yml": "statuses: [To Do, Done]\n", "backlog/tasks/b-1.md": "---\nid: B-1\nstatus: Done\n---\n",
		}, "", "Draft 0, To Do 0, Done 1, Completed 0, Archived 0",
	},
	"task-master": {
		map[string]string{".taskmaster/tasks/tasks.json": `{"master": {"tasks": [{"id": 1, "title": "Log in", "status": "done"}]}}`},
		"",
		"pending 0, in-progress 0, review 0, done 1, deferred 0, cancelled 0",
	},
	"bmad": {
		map[string]string{"_bmad-output/sprint-status.yaml": "development_status:\n  1-1-log-in: done\n"},
		"",
		"backlog 0, ready-for-dev 0, in-progress 0, review 0, done 1",
	},
}

func plant(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestUpServesWhatItFindsInTwentyRepositories: each board under its repository's name, of every layout; a repository without one
// is named, and stays as it is.
func TestUpServesWhatItFindsInTwentyRepositories(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	args := []string{"up", "--listen=localhost:0", "--data=DIR/data"}
	names, without := []string{}, []string{}
	for _, layout := range slices.Sorted(maps.Keys(layoutTrees)) {
		for i := range 3 {
			name := fmt.Sprintf("%s-%d", layout, i)
			plant(t, filepath.Join(dir, "src", name), layoutTrees[layout].files)
			names, args = append(names, name), append(args, "DIR/src/"+name)
		}
	}
	plant(t, filepath.Join(dir, "src/both"), layoutTrees["openspec"].files)
	plant(t, filepath.Join(dir, "src/both"), layoutTrees["backlog.md"].files)
	plant(t, filepath.Join(dir, "src"), map[string]string{"code/main.go": "", "unused/work/.keep": "", "notes.txt": ""})
	if err := os.Remove(filepath.Join(dir, "src/unused/work/.keep")); err != nil {
		t.Fatal(err)
	}
	args = append(args, "DIR/src/both")
	for _, name := range []string{"code", "notes.txt", "unused"} {
		args, without = append(args, "DIR/src/"+name), append(without, filepath.Join(dir, "src", name))
	}
	p := start(t, switchyard(t, dir, args...))
	_, urls := p.registry(t)
	if got, want := slices.Sorted(maps.Keys(urls)), slices.Sorted(slices.Values(append(names, "both", "both-backlog.md"))); !slices.Equal(got, want) {
		t.Errorf("projects %v, want %v", got, want)
	}
	for _, name := range names {
		if !strings.Contains(p.said, "Project "+name+" is served at") {
			t.Errorf("%s is not named in %s", name, p.said)
		}
	}
	if line := "Not served, without a board: " + strings.Join(without, ", ") + "\n"; !strings.Contains(p.stderr.String(), line) {
		t.Errorf("%q is not in %s", line, &p.stderr)
	}
	if entries, err := os.ReadDir(filepath.Join(dir, "src/unused/work")); err != nil || len(entries) > 0 {
		t.Errorf("the directory without a board has %v, %v", entries, err)
	}
	p.eventually(t, "/api/gateway/pipeline", `"1_story_login"`, `"add-login"`, `"001-login"`, `"login"`, `"B-1"`)
}

func TestLayoutsSaysWhichBoardsThereAre(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	args, want := []string{"layouts", "DIR/code"}, ""
	for _, layout := range board.Layouts() {
		tree, looked := layoutTrees[layout]
		if !looked {
			if !strings.Contains(board.SearchedLayouts(), "("+layout+" only") {
				t.Errorf("no board of %s is tried", layout)
			}
			continue
		}
		plant(t, filepath.Join(dir, layout), tree.files)
		args = append(args, "DIR/"+layout)
		want += layout + " DIR/" + layout + tree.at + " " + tree.says + "\n"
	}
	plant(t, filepath.Join(dir, "code"), map[string]string{"main.go": ""})
	out, err := switchyard(t, dir, args...).Output()
	if got := strings.ReplaceAll(string(out), dir, "DIR"); err != nil || got != want {
		t.Errorf("%v: %s", err, got)
	}
	out, err = switchyard(t, dir, "layouts", "DIR/openspec/openspec/changes", "DIR/kiro/.kiro", "DIR/bmad/_bmad-output").Output()
	if got := string(out); err != nil || strings.Count(got, "\n") != 3 || !strings.HasPrefix(got, "openspec "+dir+"/openspec Draft") {
		t.Errorf("of directories of boards: %v: %s", err, got)
	}
	plant(t, filepath.Join(dir, "mono repo"), map[string]string{
		"packages/bread/openspec/changes/add-bread/tasks.md": "- [ ] a", "cakes/openspec/config.yaml": "",
		"node_modules/x/openspec/config.yaml": "", ".x/openspec/config.yaml": "", "deep/a/b/c/d/openspec/config.yaml": "",
		"prisma/migrations/20250102030405_init/migration.sql": "",
	})
	out, err = switchyard(t, dir, "layouts", "DIR/mono repo").Output()
	if got := strings.ReplaceAll(string(out), dir, "DIR"); err != nil || strings.Count(got, "\n") != 2 ||
		!strings.Contains(got, "openspec DIR/mono repo/packages/bread Draft 0, Planned 1,") || !strings.HasPrefix(got, "openspec DIR/mono repo/cakes Draft 0") {
		t.Errorf("below a directory: %v: %s", err, got)
	}
	words := func(line string) []string { // of which one has a blank
		return domain.Map(strings.Fields(strings.ReplaceAll(line, "mono repo", "mono·repo")), func(word string) string {
			return strings.ReplaceAll(word, "mono·repo", "mono repo")
		})
	}
	below := "; for those below it: switchyard up 'DIR/mono repo/cakes' 'DIR/mono repo/packages/bread'\n"
	for args, want := range map[string]string{
		"layouts DIR/code":                           "No board in DIR/code\nswitchyard: none of the directories has a board; looked for stages, openspec, spec-kit, kiro, backlog.md, task-master, bmad (beads only with switchyard project --layout)\n",
		"layouts DIR/none":                           "No board in DIR/none, which does not exist\n",
		"up --listen=localhost:0 DIR/mono repo":      board.SearchedLayouts() + below,
		"project --name x --work DIR/mono repo":      board.SearchedLayouts() + below,
		"up --listen=localhost:0 DIR/mono repo/deep": "; for the directories in it: switchyard up DIR/mono repo/deep/*\n",
	} {
		var exit *exec.ExitError
		if _, err := switchyard(t, dir, words(args)...).Output(); !errors.As(err, &exit) || exit.ExitCode() != 1 {
			t.Errorf("%s, of no board: %v", args, err)
		} else if says := strings.ReplaceAll(string(exit.Stderr), dir, "DIR"); !strings.Contains(says, want) {
			t.Errorf("%s, of no board, says %s", args, says)
		}
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
