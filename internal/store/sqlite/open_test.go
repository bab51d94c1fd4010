package sqlite_test

import (
	"bytes"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
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

// TestADatabaseOfADevelopmentVersionIsLeftAsItIs with what a killed gateway left beside it.
func TestADatabaseOfADevelopmentVersionIsLeftAsItIs(t *testing.T) {
	for _, c := range []struct{ journal, version, want string }{
		{"WAL", "16", "a development version of switchyard; the last commit that reads it is 4d58293"},
		{"DELETE", "3", "4d58293"},
		{"WAL", "1000000", "was moved to postgres://db/old: start the gateway with that as --database"},
	} {
		running, left := t.TempDir(), t.TempDir()
		db, err := sql.Open("sqlite", filepath.Join(running, sqlite.FileName))
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		db.SetMaxOpenConns(1)
		for _, statement := range []string{
			"PRAGMA journal_mode = " + c.journal, "CREATE TABLE state (key TEXT PRIMARY KEY, value TEXT NOT NULL)",
			"INSERT INTO state VALUES ('moved_to', 'postgres://db/old')", "PRAGMA user_version = " + c.version,
		} {
			if _, err := db.ExecContext(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
		before := map[string][]byte{}
		for _, name := range []string{sqlite.FileName, sqlite.FileName + "-wal"} {
			if content, err := os.ReadFile(filepath.Join(running, name)); err == nil {
				before[name] = content
				copyFile(t, filepath.Join(running, name), filepath.Join(left, name))
			}
		}
		if _, err := sqlite.Open(t.Context(), left); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("schema %s: %v, want %q", c.version, err, c.want)
		}
		for name, want := range before {
			if now, err := os.ReadFile(filepath.Join(left, name)); err != nil || !bytes.Equal(now, want) {
				t.Errorf("schema %s: %s was changed (%v)", c.version, name, err)
			}
		}
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

// TestARestoredDatabaseHasAnotherIdentity, so that nothing takes its ids for those that were given before.
func TestARestoredDatabaseHasAnotherIdentity(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, sqlite.FileName)
	identity := func() string {
		t.Helper()
		db, err := sqlite.Open(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		id, err := db.Identity(t.Context())
		again, errAgain := db.Identity(t.Context())
		if err := errors.Join(err, errAgain, db.Close()); err != nil || id == "" || again != id {
			t.Errorf("identities %q and %q, %v", id, again, err)
		}
		return id
	}
	first := identity()
	if again := identity(); again != first {
		t.Errorf("after a restart it is %q, was %q", again, first)
	}
	backup, copied := filepath.Join(t.TempDir(), "backup"), filepath.Join(t.TempDir(), "copy")
	copyFile(t, path, copied)
	if err := sqlite.Backup(t.Context(), dir, backup); err != nil {
		t.Fatal(err)
	}
	if again := identity(); again != first {
		t.Errorf("after a backup it is %q, was %q", again, first)
	}
	seen := map[string]bool{first: true}
	for _, restored := range []string{backup, copied} {
		copyFile(t, restored, path)
		id := identity()
		if seen[id] {
			t.Errorf("%s has the identity of another", filepath.Base(restored))
		}
		if seen[id] = true; identity() != id {
			t.Errorf("%s has another identity at the next start", filepath.Base(restored))
		}
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
