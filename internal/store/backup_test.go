package store_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"switchyard/internal/store"
)

func TestAFailedBackupLeavesNoFile(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "copy.db")
	if err := store.Backup(context.Background(), dir, target); err == nil || !strings.Contains(err.Error(), store.FileName) {
		t.Errorf("without a database: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, store.FileName), bytes.Repeat([]byte("no database "), 100), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := store.Backup(context.Background(), dir, target); err == nil || !strings.Contains(err.Error(), store.FileName) {
		t.Errorf("of a damaged database: %v", err)
	}
	if _, err := os.Stat(target); err == nil {
		t.Error("a failed backup left a file")
	}
}
