package git_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"switchyard/internal/git"
	"switchyard/internal/gittest"
)

// The commands that look at work trees, branches and merges run no program of the repository, and say what git says.
func TestNoCommandSpringsATrap(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	gittest.Git(t, dir, "init", "-q")
	write("both", "a\nb\nc\nd\ne\n")
	write("other", "x\n")
	gittest.Git(t, dir, "add", ".")
	gittest.Git(t, dir, "commit", "-qm", "base")
	gittest.Git(t, dir, "switch", "-qc", "side")
	write("both", "A\nb\nc\nd\ne\n")
	gittest.Git(t, dir, "commit", "-qam", "side")
	gittest.Git(t, dir, "switch", "-q", "main")
	write("both", "a\nb\nc\nd\nE\n")
	write("other", "y\n")
	gittest.Git(t, dir, "commit", "-qam", "main")
	write("other", "z\nz\n")
	write("new", "n\n")
	gittest.Git(t, dir, "config", "filter.a=b.c.clean", "false")
	gittest.Traps(t, dir)
	r, err := git.Open(dir).WithoutDrivers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ command, want string }{
		{"worktree list --porcelain", "branch refs/heads/main"},
		{"for-each-ref --format=%(refname:short) refs/heads", "main\nside"},
		{"merge-base main side", ""},
		{"rev-list --left-right --count main...side", "1\t1"},
		{"diff --numstat HEAD", "2\t1\tother"},
		{"diff -p main~1", "+z"},
		{"diff -p main...side", "+A"},
		{"status --porcelain", "M other\n?? new"},
		{"log -p -m --all --format=%s", "+E"},
		{"show-ref --heads", "refs/heads/side"},
	} {
		out, err := r.Output(t.Context(), strings.Fields(test.command)...)
		if err != nil || !strings.Contains(out, test.want) {
			t.Errorf("git %s: %v, %q, want %q", test.command, err, out, test.want)
		}
	}
	merged, err := r.Output(t.Context(), "merge-tree", "--write-tree", "main", "side")
	if err != nil {
		t.Fatal(err)
	}
	if text, err := r.Output(t.Context(), "cat-file", "blob", merged+":both"); text != "A\nb\nc\nd\nE" {
		t.Errorf("merged to %q, %v", text, err)
	}
	if filtered, err := r.Filtered(t.Context(), "other"); filtered != "other" || err != nil {
		t.Errorf("filtered: %q, %v", filtered, err)
	}
	err = r.Commit(t.Context(), git.Commit{Author: "Zoë", Subject: "ours", Paths: []string{"other", "new", "none"}})
	if err != nil {
		t.Fatal(err)
	}
	if out, err := r.Output(t.Context(), "log", "-1", "--format=%an %s", "--name-only"); out != "Zoë ours\n\nnew\nother" {
		t.Errorf("committed %q, %v", out, err)
	}
}
