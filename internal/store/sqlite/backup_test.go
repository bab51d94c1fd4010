package sqlite_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"switchyard/internal/store/sqlite"
)

func TestAFailedBackupLeavesNoFile(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "copy.db")
	if err := sqlite.Backup(context.Background(), dir, target); err == nil || !strings.Contains(err.Error(), sqlite.FileName) {
		t.Errorf("without a database: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, sqlite.FileName), bytes.Repeat([]byte("no database "), 100), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := sqlite.Backup(context.Background(), dir, target); err == nil || !strings.Contains(err.Error(), sqlite.FileName) {
		t.Errorf("of a damaged database: %v", err)
	}
	if _, err := os.Stat(target); err == nil {
		t.Error("a failed backup left a file")
	}
}
