//go:build unix

package board

import (
	"path/filepath"
	"syscall"
	"testing"
)

// TestASearchForBoardsIsNotHeldByAPipe that nobody writes to.
func TestASearchForBoardsIsNotHeldByAPipe(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "specs"), 0o600); err != nil {
		t.Fatal(err)
	}
	if found, err := Find(dir, ""); err != nil || len(found) != 0 {
		t.Errorf("%v %v", found, err)
	}
}
