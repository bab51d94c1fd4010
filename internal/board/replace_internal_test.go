//go:build linux

package board

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestAFileThatIsNewerByTheTimeOfTheExchangeIsGivenBack: another program writes between the last look and the rename.
func TestAFileThatIsNewerByTheTimeOfTheExchangeIsGivenBack(t *testing.T) {
	for name, write := range map[string]func(path string) error{
		"replaced": func(path string) error {
			return errors.Join(os.WriteFile(path+".new", []byte("newer"), 0o666), os.Rename(path+".new", path))
		},
		"written in place": func(path string) error { return os.WriteFile(path, []byte("newer"), 0o666) },
	} {
		path := filepath.Join(t.TempDir(), "7.md")
		if err := os.WriteFile(path, []byte("older"), 0o666); err != nil {
			t.Fatal(err)
		}
		dir, err := os.Open(filepath.Dir(path))
		if err != nil {
			t.Fatal(err)
		}
		defer dir.Close()
		file, err := readRegular(dir, "7.md", maxFile)
		if err != nil {
			t.Fatal(err)
		}
		temp, err := writeTemp(dir, []byte("ours"), file)
		if err = errors.Join(err, write(path)); err != nil {
			t.Fatal(err)
		}
		if err := replace(dir, temp, "7.md", file); !errors.Is(err, errChanged) {
			t.Errorf("%s: %v", name, err)
		}
		entries, _ := os.ReadDir(dir.Name())
		if got, err := os.ReadFile(path); err != nil || string(got) != "newer" || len(entries) != 1 {
			t.Errorf("%s: %q, %v, and %d files", name, got, err, len(entries))
		}
	}
}

// TestABoxIsTickedInTheTextThatWasRead, not at the same place in a newer one.
func TestABoxIsTickedInTheTextThatWasRead(t *testing.T) {
	const tasks, newer = "openspec/changes/a/tasks.md", "# Tasks\nnumber 1\n- [ ] one\n"
	b := openQuietly(t, "openspec", map[string]string{tasks: "- [ ] one\n"})
	s := b.layout.(*units)
	tree, err := openTree(b.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer tree.close()
	e, _, err := s.find(tree, unitCache{}, "a")
	if err != nil {
		t.Fatal(err)
	}
	r := e.record()
	writeTree(t, b.dir, map[string]string{tasks: newer})
	err = tree.rewrite(tasks, func(content []byte) ([]byte, error) {
		return withTask(content, r.tasks, TaskChange{Line: 1, Done: true})
	})
	if got, _ := os.ReadFile(filepath.Join(b.dir, tasks)); !errors.Is(err, errChanged) || string(got) != newer {
		t.Errorf("%q, %v", got, err)
	}
}
