package main

import (
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"switchyard/internal/waittest"
)

func TestABackupOfARunningGatewayIsWhole(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := start(t, switchyard(t, dir, "gateway", "--listen=localhost:0", "--data=DIR/data"))
	add := func(name string) {
		if status, text := p.do(t, "POST", "/api/gateway/projects", fmt.Sprintf(`{"name":%q,"url":"http://127.0.0.1:1"}`, name)); status != 200 {
			t.Error(status, text)
		}
	}
	add("before")
	stop := make(chan bool)
	var writer sync.WaitGroup
	writer.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				add(fmt.Sprintf("during %d", i))
			}
		}
	})
	out, err := switchyard(t, dir, "backup", "--data=DIR/data", "DIR/copy.db").CombinedOutput()
	close(stop)
	writer.Wait()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	copied := filepath.Join(dir, "copy.db")
	if info, err := os.Stat(copied); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v; want mode 0600", info.Mode(), err)
	}
	if status, says := refused(t, switchyard(t, dir, "backup", "--data=DIR/data", "DIR/copy.db")); status != 1 || !strings.Contains(says, copied+": file exists") {
		t.Errorf("over an existing file: %d, %s", status, says)
	}

	restored := filepath.Join(dir, "restored")
	os.Mkdir(restored, 0o700)
	if err := os.Rename(copied, filepath.Join(restored, "switchyard.db")); err != nil {
		t.Fatal(err)
	}
	q := start(t, switchyard(t, dir, "gateway", "--listen=localhost:0", "--data=DIR/restored"))
	if status, text := q.do(t, "GET", "/api/gateway", ""); status != 200 || !strings.Contains(text, `"before"`) {
		t.Errorf("from the copy: %d, %s", status, text)
	}
}

// TestAKilledBackupLeavesNothingOfItsName: an incomplete copy must not look like a complete one.
func TestAKilledBackupLeavesNothingOfItsName(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := start(t, switchyard(t, dir, "gateway", "--listen=localhost:0", "--data=DIR/data"))
	p.stop(t, syscall.SIGTERM)
	db, err := sql.Open("sqlite", filepath.Join(dir, "data", "switchyard.db"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("CREATE TABLE filler AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 600) SELECT zeroblob(100000) AS data FROM n"); err != nil {
		t.Fatal(err)
	}
	db.Close()
	copies := filepath.Join(dir, "copies")
	os.Mkdir(copies, 0o755)
	here := func() (names []string) {
		entries, _ := os.ReadDir(copies)
		for _, entry := range entries {
			names = append(names, entry.Name())
		}
		return names
	}
	backup := func() *exec.Cmd { return switchyard(t, dir, "backup", "--data=DIR/data", "DIR/copies/copy.db") }
	stopped := func(cmd func() *exec.Cmd, signal syscall.Signal) {
		t.Helper()
		before := len(here())
		for range 10 { // until one is not over before the signal, which a busy machine sends late
			p := launch(t, cmd())
			waittest.Until(t, "the backup is under way", func() bool { return len(here()) > before })
			if status, _ := p.stop(t, signal); status != 0 {
				return
			}
			if err := os.Remove(p.Args[len(p.Args)-1]); err != nil {
				t.Fatal(err)
			}
		}
		t.Errorf("a backup says after %v that all is well", signal)
	}
	stopped(backup, syscall.SIGKILL)
	if names := here(); slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, "copy.db") }) {
		t.Errorf("after kill -9 there is %q", names)
	}
	if out, err := backup().CombinedOutput(); err != nil {
		t.Errorf("the next: %v: %s", err, out)
	}
	if names := here(); len(names) != 1 || names[0] != "copy.db" {
		t.Errorf("after the next there is %q", names)
	}
	stopped(func() *exec.Cmd { return switchyard(t, dir, "backup", "--data=DIR/data", "DIR/copies/again.db") }, syscall.SIGTERM)
	if names := here(); len(names) != 1 {
		t.Errorf("after SIGTERM there is %q", names)
	}
}

func TestBackupKeepsTheLastOnes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := start(t, switchyard(t, dir, "gateway", "--listen=localhost:0", "--data=DIR/data"))
	p.stop(t, syscall.SIGTERM)
	backups := filepath.Join(dir, "new", "backups")
	if err := os.MkdirAll(backups, 0o700); err != nil {
		t.Fatal(err)
	}
	others := []string{"switchyard-20200101T000000.000Z.db.old", "switchyard-mine.db", "switchyard.db"}
	for _, name := range append(others, "switchyard-20200101T000000.000Z.db", "switchyard-20200102T000000.000Z.db") {
		if err := os.WriteFile(filepath.Join(backups, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		if out, err := switchyard(t, dir, "backup", "--data=DIR/data", "--keep=2", "DIR/new/backups").CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	entries, err := os.ReadDir(backups)
	if err != nil || len(entries) != len(others)+2 {
		t.Errorf("there are %v, %v", entries, err)
	}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), "switchyard-2020") && !slices.Contains(others, entry.Name()) {
			t.Errorf("%s is kept", entry.Name())
		}
	}
	if out, err := switchyard(t, dir, "backup", "--data=DIR/nothing", "--keep=1", "DIR/new/backups").CombinedOutput(); err == nil {
		t.Errorf("without a database: %s", out)
	}
	if again, _ := os.ReadDir(backups); len(again) != len(entries) {
		t.Error("a backup that failed removed another")
	}
	if status, says := refused(t, switchyard(t, dir, "backup", "--data=DIR/data", "--keep=0", "DIR/new/backups")); status != 2 || !strings.Contains(says, "--keep") {
		t.Errorf("--keep=0: %d %s", status, says)
	}
}
