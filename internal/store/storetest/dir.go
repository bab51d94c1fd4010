package storetest

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"switchyard/internal/store/sqlite"
)

// Dir returns a directory with a new SQLite database, until the test ends. It is copied: creating one takes several
// times as long as opening it.
func Dir(t testing.TB) string {
	t.Helper()
	files, err := made()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp(memory(), "database")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// made creates a database once and returns its files.
var made = sync.OnceValues(func() (files map[string][]byte, err error) {
	dir, err := os.MkdirTemp(memory(), "database")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	db, err := sqlite.Open(context.Background(), dir)
	if err != nil {
		return nil, err
	}
	if err := db.Close(); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	files = map[string][]byte{}
	for _, entry := range entries {
		if files[entry.Name()], err = os.ReadFile(filepath.Join(dir, entry.Name())); err != nil {
			return nil, err
		}
	}
	return files, nil
})
