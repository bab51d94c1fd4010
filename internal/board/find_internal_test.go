package board

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"switchyard/internal/domain"
)

// TestASearchForBoardsHasABound: in a large tree it reads no more than some thousand names, and finds what is near.
func TestASearchForBoardsHasABound(t *testing.T) {
	dir := t.TempDir()
	mkdir := func(name string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 20 {
		for j := range 20 {
			for k := range 20 {
				mkdir(fmt.Sprintf("docs/%d/%d/%d", i, j, k))
			}
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	late := filepath.Join(dir, "docs/9/9/9/sprint-status.yaml")
	if err := os.WriteFile(late, []byte("development_status:\n  1-1-a: done\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if found := firstMatch(root, "docs/*/*/*/sprint-status.yaml"); found != "" {
		t.Errorf("%s was found behind 8,000 other directories", found)
	}
	for _, near := range []string{"docs/0/0/a", "docs/other/one/a"} { // behind the others, of which there are many
		mkdir(near)
		place := filepath.Join(dir, near, "sprint-status.yaml")
		if err := os.Rename(late, place); err != nil {
			t.Fatal(err)
		}
		late = place
		if found, err := Find(dir, domain.LayoutBMAD); err != nil || len(found) != 1 {
			t.Errorf("%s: %v %v", near, found, err)
		}
	}
}
