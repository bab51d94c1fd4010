package git_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"switchyard/internal/git"
	"switchyard/internal/gittest"
)

// Paths of conflicts are those of the repository, as all others are, wherever in it the board is.
func TestConflictsAreNamedFromTheTop(t *testing.T) {
	dir := t.TempDir()
	board := filepath.Join(dir, "work")
	write := func(text string) {
		if err := os.WriteFile(filepath.Join(dir, "code"), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(board, 0o777); err != nil {
		t.Fatal(err)
	}
	gittest.Git(t, dir, "init", "-q")
	write("base\n")
	gittest.Git(t, dir, "add", ".")
	gittest.Git(t, dir, "commit", "-qm", "base")
	gittest.Git(t, dir, "switch", "-qc", "side")
	write("side\n")
	gittest.Git(t, dir, "commit", "-qam", "side")
	gittest.Git(t, dir, "switch", "-q", "main")
	write("main\n")
	gittest.Git(t, dir, "commit", "-qam", "main")
	tree, _ := git.Find(board)
	merges, err := git.Open(board).Merges(t.Context(), tree, "main", []string{"side"})
	if err != nil || len(merges) != 1 || !slices.Equal(merges[0].Conflicts, []string{"code"}) {
		t.Errorf("%+v, %v", merges, err)
	}
}
