package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
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
