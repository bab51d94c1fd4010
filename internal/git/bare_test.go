package git_test

import (
	"os"
	"path/filepath"
	"testing"

	"switchyard/internal/git"
	"switchyard/internal/gittest"
)

// A bare repository stands for the work tree of its HEAD's branch, and so does a directory whose .git leads to it.
func TestABareRepositoryStandsForItsWorkTree(t *testing.T) {
	dir := t.TempDir()
	gittest.Git(t, dir, "init", "-q", "first")
	first := filepath.Join(dir, "first")
	gittest.Git(t, first, "commit", "-q", "--allow-empty", "-m", "x")
	gittest.Git(t, dir, "clone", "-q", "--bare", "first", "app/.bare")
	app := filepath.Join(dir, "app")
	if err := os.WriteFile(filepath.Join(app, ".git"), []byte("gitdir: ./.bare\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if tree, is := git.FindBare(app); is {
		t.Errorf("without a work tree: %+v", tree)
	}
	gittest.Git(t, app, "worktree", "add", "-q", "-b", "side", filepath.Join(app, "side"))
	gittest.Git(t, app, "worktree", "add", "-q", filepath.Join(app, "main"), "main")
	for _, path := range []string{app, filepath.Join(app, ".bare")} {
		if tree, is := git.FindBare(path); !is || tree.Dir != filepath.Join(app, "main") {
			t.Errorf("%s: %+v", path, tree)
		}
	}
	if tree, is := git.FindBare(first); is {
		t.Errorf("a repository with a work tree: %+v", tree)
	}
}
