// Package boardtools_test holds the layouts of boards to the tools that they are from.
package boardtools_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"switchyard/internal/board"
	"switchyard/internal/domain"
	"switchyard/internal/feed"
	"switchyard/internal/waittest"
)

// trees is a directory with boards of the tools' users, which are compared as well.
var trees = flag.String("trees", "", "a directory whose subdirectories have boards to compare, too")

// boardsIn returns the boards of a layout one level below the directory that the flag names.
func boardsIn(t *testing.T, layout string) (dirs []string) {
	t.Helper()
	if *trees == "" {
		return nil
	}
	entries, err := os.ReadDir(*trees)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if found, err := board.Find(filepath.Join(*trees, entry.Name()), layout); err == nil && len(found) > 0 {
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS(found[0].Dir)); err != nil {
				t.Fatal(err)
			}
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// tool is a command of one of the tools, which know nothing of the network and of who runs them.
func tool(t *testing.T, dir, name string, args ...string) *exec.Cmd {
	t.Helper()
	if testing.Short() {
		t.Skip("runs the tools of boards")
	}
	path, err := filepath.Abs(filepath.Join("node_modules/.bin", name))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		waittest.Missing(t, err)
	}
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(path)+":"+os.Getenv("PATH"), "HOME="+filepath.Dir(dir), "OPENSPEC_TELEMETRY=0", "DO_NOT_TRACK=1")
	return cmd
}

// run returns what a command writes to its standard output.
func run(t *testing.T, cmd *exec.Cmd) []byte {
	t.Helper()
	var errors strings.Builder
	cmd.Stderr = &errors
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v: %s%s", cmd, err, out, errors.String())
	}
	return out
}

// list decodes what a command lists.
func list(t *testing.T, cmd *exec.Cmd, to any) {
	t.Helper()
	out := run(t, cmd)
	if err := json.Unmarshal(out, to); err != nil {
		t.Fatalf("%s: %v: %.200s", cmd, err, out)
	}
}

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

func open(t *testing.T, dir, layout string) *board.Board {
	t.Helper()
	b, err := board.Open(board.Options{
		Dir: dir, Layout: layout, State: t.TempDir(), Log: slog.New(slog.DiscardHandler), AllowWrites: true,
		Record: func(...feed.Notification) {},
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// standing is where a story stands.
type standing struct {
	stage string
	domain.Criteria
}

func (s standing) String() string { return fmt.Sprintf("%s %d/%d", s.stage, s.Done, s.Total) }

// standings returns those of the stories that are not in one of the stages.
func standings(b *board.Board, without ...string) map[string]standing {
	all := map[string]standing{}
	for _, stage := range b.View().Stages {
		for _, s := range stage.Stories {
			all[s.ID] = standing{stage.Name, s.Criteria}
		}
	}
	for id, s := range all {
		for _, suffix := range without {
			if strings.HasSuffix(s.stage, suffix) {
				delete(all, id)
			}
		}
	}
	return all
}

// compare fails the test unless the tool says the same, and there is as much as wanted.
func compare(t *testing.T, tool, ours map[string]standing, atLeast int, show func(id string) string) {
	t.Helper()
	if len(tool) < atLeast {
		t.Errorf("the tool knows %d stories only", len(tool))
	}
	equal := 0
	for id, want := range tool {
		if got, exists := ours[id]; !exists || got != want {
			t.Errorf("%s: %v (there: %t), the tool says %v; %q", id, got, exists, want, show(id))
			continue
		}
		equal++
	}
	for id, got := range ours {
		if _, exists := tool[id]; !exists {
			t.Errorf("%s: %v, the tool does not have it; %q", id, got, show(id))
		}
	}
	t.Logf("%d of %d equal", equal, len(tool))
}
