package git

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"switchyard/internal/files"
)

// tempDirs is the prefix of directories for what git writes, or is copied from it, and nobody needs later.
const tempDirs = "switchyard-git-"

// TempDir makes a directory that exists until remove is called, or until another process that starts finds that this
// one no longer runs.
func TempDir() (dir string, remove func() error, err error) {
	for range 10 { // another process that starts may find it before it is locked
		if dir, err = os.MkdirTemp("", tempDirs+"*"); err != nil {
			return "", nil, err
		}
		unlock, err := files.LockDir(dir)
		if err == nil {
			if _, err = os.Stat(dir); err == nil {
				return dir, func() error { defer unlock(); return os.RemoveAll(dir) }, nil
			}
			unlock()
		}
	}
	return "", nil, errors.New("there is no place for temporary files")
}

// SweepTemp removes, once, the directories that killed processes left behind.
var SweepTemp = sync.OnceFunc(func() {
	entries, _ := os.ReadDir(os.TempDir())
	for _, entry := range entries {
		if dir := filepath.Join(os.TempDir(), entry.Name()); entry.IsDir() && strings.HasPrefix(entry.Name(), tempDirs) {
			if unlock, err := files.LockDir(dir); err == nil {
				_ = os.RemoveAll(dir)
				unlock()
			}
		}
	}
})
