package sqlite_test

import (
	"os"
	"path/filepath"
	"testing"

	"switchyard/internal/store/sqlite"
)

// TestWhatAKilledGatewayLeftIsInTheDatabaseWhenTheNextStops: people copy the database file of a stopped gateway.
func TestWhatAKilledGatewayLeftIsInTheDatabaseWhenTheNextStops(t *testing.T) {
	ctx := t.Context()
	running, killed := t.TempDir(), t.TempDir()
	db := openDir(t, running)
	if err := db.SetState(ctx, "key", "value"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{sqlite.FileName, sqlite.FileName + "-wal"} {
		copyFile(t, filepath.Join(running, name), filepath.Join(killed, name))
	}
	if err := openDir(t, killed).Close(); err != nil {
		t.Fatal(err)
	}
	copied := t.TempDir()
	copyFile(t, filepath.Join(killed, sqlite.FileName), filepath.Join(copied, sqlite.FileName))
	if value, err := openDir(t, copied).State(ctx, "key"); err != nil || value != "value" {
		t.Errorf("the copy has %q (%v)", value, err)
	}
}

// TestABackupIsWrittenToWhileItIsRead: a backup has no write-ahead log until it is opened.
func TestABackupIsWrittenToWhileItIsRead(t *testing.T) {
	ctx := t.Context()
	dir, restored := t.TempDir(), t.TempDir()
	db := openDir(t, dir)
	if err := db.SetState(ctx, "key", "old"); err != nil {
		t.Fatal(err)
	}
	if err := sqlite.Backup(ctx, dir, filepath.Join(restored, sqlite.FileName)); err != nil {
		t.Fatal(err)
	}
	db = openDir(t, restored)
	stopReading := db.Read(t)
	defer stopReading()
	if err := db.SetState(ctx, "key", "new"); err != nil {
		t.Error(err)
	}
}

func openDir(t *testing.T, dir string) *sqlite.DB {
	t.Helper()
	db, err := sqlite.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	content, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, content, 0o600); err != nil {
		t.Fatal(err)
	}
}
