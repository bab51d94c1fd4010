package main

import (
	"bytes"
	"net"
	"strings"
	"syscall"
	"testing"

	"switchyard/internal/pgtest"
	"switchyard/internal/waittest"
)

func TestADataDirectoryIsMovedToPostgreSQL(t *testing.T) {
	t.Parallel()
	dir, url := t.TempDir(), pgtest.Database(t)
	migrate := func(to string) []string { return []string{"migrate", "--data=DIR/data", "--to=" + to} }
	p := start(t, switchyard(t, dir, "gateway", "--listen=localhost:0", "--data=DIR/data"))
	for _, name := range []string{"alpha", "beta"} {
		if status, text := p.do(t, "POST", "/api/gateway/projects", `{"name":"`+name+`","url":"http://127.0.0.1:1"}`); status != 200 {
			t.Fatal(status, text)
		}
	}
	if status, says := refused(t, switchyard(t, dir, migrate(url)...)); status != 1 || !strings.Contains(says, "in use by another running gateway") {
		t.Errorf("while the gateway runs: %d, %s", status, says)
	}
	_, want := p.do(t, "GET", "/api/gateway", "")
	p.stop(t, syscall.SIGTERM)

	if out, err := switchyard(t, dir, migrate(url)...).CombinedOutput(); err != nil || !strings.Contains(string(out), "has been moved to postgres://127.0.0.1:") {
		t.Fatalf("%v: %s", err, out)
	}
	if status, says := refused(t, switchyard(t, dir, "gateway", "--listen=localhost:0", "--data=DIR/data")); status != 1 || !strings.Contains(says, "was moved to postgres://127.0.0.1:") {
		t.Errorf("a start on what was moved: %d, %s", status, says)
	}
	q := start(t, switchyard(t, dir, "gateway", "--listen=localhost:0", "--data=DIR/other", "--database="+url))
	waittest.Until(t, "the gateway has the database", func() bool {
		status, _ := q.do(t, "GET", "/readyz", "")
		return status == 200
	})
	if _, got := q.do(t, "GET", "/api/gateway", ""); got != want {
		t.Errorf("the registry is %s, was %s", got, want)
	}

	// A target that is not empty is refused, and the source is unchanged.
	r := start(t, switchyard(t, dir, "gateway", "--listen=localhost:0", "--data=DIR/third"))
	r.stop(t, syscall.SIGTERM)
	if status, says := refused(t, switchyard(t, dir, "migrate", "--data=DIR/third", "--to="+url)); status != 1 || !strings.Contains(says, "is not empty") {
		t.Errorf("to what is not empty: %d, %s", status, says)
	}
	start(t, switchyard(t, dir, "gateway", "--listen=localhost:0", "--data=DIR/third"))
}

func TestAMoveThatIsStoppedSaysSo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	start(t, switchyard(t, dir, "gateway", "--listen=localhost:0", "--data=DIR/data")).stop(t, syscall.SIGTERM)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	var says bytes.Buffer
	cmd := switchyard(t, dir, "migrate", "--data=DIR/data", "--to=postgres://"+silent.Addr().String()+"/x?sslmode=disable")
	cmd.Stderr = &says
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	connection, err := silent.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if status := cmd.ProcessState.ExitCode(); status != 1 || !strings.Contains(says.String(), "stopped: nothing was moved") {
		t.Errorf("exit status %d: %s", status, says.String())
	}
}
