package main

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"switchyard/internal/store/sqlite"
	"switchyard/internal/waittest"
)

func TestADamagedDatabaseStopsTheStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "data", "switchyard.db")
	os.Mkdir(filepath.Dir(path), 0o700)
	damaged := bytes.Repeat([]byte("no database "), 1000)
	os.WriteFile(path, damaged, 0o600)
	status, says := refused(t, switchyard(t, dir, "gateway", "--listen=localhost:0", "--data=DIR/data"))
	if status != 1 || !strings.Contains(says, path) || !strings.Contains(says, "put a backup in its place") {
		t.Errorf("%d, %s", status, says)
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, damaged) {
		t.Errorf("the file was changed (%v)", err)
	}
}

// TestADatabaseOfADevelopmentVersionIsRefused: such a version did not set SQLite's application id.
func TestADatabaseOfADevelopmentVersionIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "data", sqlite.FileName)
	db, err := sqlite.Open(t.Context(), filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	old, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	copy(old[68:72], make([]byte, 4))
	if err := os.WriteFile(path, old, 0o600); err != nil {
		t.Fatal(err)
	}
	status, says := refused(t, switchyard(t, dir, "gateway", "--listen=localhost:0", "--data=DIR/data"))
	if status != 1 || !strings.Contains(says, path+": was written by a development version") || !strings.Contains(says, "4d58293") {
		t.Errorf("%d, %s", status, says)
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, old) {
		t.Errorf("the file was changed (%v)", err)
	}
}

// TestADatabaseThatIsDamagedInTheMiddleEndsTheGatewaySoon: the damage is not in a part that a start reads.
func TestADatabaseThatIsDamagedInTheMiddleEndsTheGatewaySoon(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "data", sqlite.FileName)
	db, err := sqlite.Open(t.Context(), filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	if err := db.SetState(t.Context(), writtenByKey, version()); err != nil { // else the start writes, and so checks before
		t.Fatal(err)
	}
	for i := range 200 {
		if err := db.SetState(t.Context(), strconv.Itoa(i), strings.Repeat("x", 3000)); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	damaged, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	middle := damaged[len(damaged)/4096/2*4096:]
	copy(middle, bytes.Repeat([]byte{0xff}, 8192))
	if err := os.WriteFile(path, damaged, 0o600); err != nil {
		t.Fatal(err)
	}
	p := launch(t, switchyard(t, dir, "gateway", "--listen=localhost:0", "--data=DIR/data", "--log-level=error"))
	select {
	case <-p.ended:
	case <-time.After(time.Minute):
		t.Fatalf("it still runs: %s", &p.stderr)
	}
	want := "switchyard: database " + path + ": database disk image is malformed"
	if says := p.stderr.String(); p.ProcessState.ExitCode() != 1 || !strings.Contains(says, want) {
		t.Errorf("%d, %q, want %q", p.ProcessState.ExitCode(), says, want)
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, damaged) {
		t.Errorf("the file was changed (%v)", err)
	}
}

// TestAnEmptyDatabaseBesideASessionKeyStopsTheStart: the key says that there was a database, so something emptied it.
func TestAnEmptyDatabaseBesideASessionKeyStopsTheStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	begin := func() *exec.Cmd {
		return switchyard(t, dir, "gateway", "--listen=localhost:0", "--data=DIR/data")
	}
	path := filepath.Join(dir, "data", "switchyard.db")
	os.Mkdir(filepath.Dir(path), 0o700)
	os.WriteFile(path, nil, 0o600) // of a first start that was killed: there is no key yet
	p := start(t, begin())
	p.stop(t, syscall.SIGTERM)
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	status, says := refused(t, begin())
	if status != 1 || !strings.Contains(says, path) || !strings.Contains(says, "empty") {
		t.Errorf("%d, %s", status, says)
	}
	if info, err := os.Stat(path); err != nil || info.Size() != 0 {
		t.Errorf("the file was changed: %v, %v", info, err)
	}

	os.Remove(path)
	p = start(t, begin())
	waittest.Until(t, "a warning", func() bool { return strings.Contains(p.stderr.String(), "The database is gone") })
	os.Remove(path)
	const project = `{"name":"lost","url":"http://lost.example"}`
	loses := func(why string) {
		t.Helper()
		if status, text := p.do(t, "GET", "/readyz", ""); status != 503 || !strings.Contains(text, why) {
			t.Errorf("not ready: %d, %s", status, text)
		}
		if status, text := p.do(t, "POST", "/api/gateway/projects", project); status != 503 || !strings.Contains(text, why) {
			t.Errorf("what would be lost is accepted: %d, %s", status, text)
		}
	}
	loses("file is gone")
	os.WriteFile(path, nil, 0o600)
	loses("file was replaced")
}

// TestAPipeInPlaceOfAFileIsAnError: reading it would block forever.
func TestAPipeInPlaceOfAFileIsAnError(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := makeFifo(pipe); err != nil {
		t.Fatal(err)
	}
	os.Mkdir(filepath.Join(dir, "work"), 0o700)
	for _, args := range []string{
		"gateway --listen=localhost:0 --data=DIR/data --config=DIR/pipe",
		"gateway --listen=localhost:0 --data=DIR/data --admin-token-file=DIR/pipe",
		"agent --gateway=http://127.0.0.1:1 --token=x --state=DIR/pipe",
		"agent --gateway=http://127.0.0.1:1 --token-file=DIR/pipe --state=DIR/state.json",
		"project --name=alpha --work=DIR/work --token-file=DIR/pipe",
	} {
		if status, says := exitOf(t, switchyard(t, dir, strings.Fields(args)...)); status == 0 || !strings.Contains(says, pipe+": is not a regular file") {
			t.Errorf("%s: %d, %s", args, status, says)
		}
	}
	data := filepath.Join(dir, "data")
	os.Mkdir(data, 0o700)
	os.Rename(pipe, filepath.Join(data, sessionKeyName))
	if status, says := refused(t, switchyard(t, dir, "gateway", "--listen=localhost:0", "--data=DIR/data")); status != 1 || !strings.Contains(says, sessionKeyName+": is not a regular file") {
		t.Errorf("session key: %d, %s", status, says)
	}
	os.Rename(filepath.Join(data, sessionKeyName), pipe)

	// With pipes as the files of bot and sign-in it runs, and reports the errors where they matter.
	p := start(t, switchyard(t, dir, "gateway", "--listen=localhost:0", "--data=DIR/data", "--bot-config=DIR/pipe", "--credentials=DIR/pipe"))
	if status, text := p.do(t, "GET", "/api/gateway/bot-config", ""); status != 500 {
		t.Errorf("bot-config: %d %s", status, text)
	}
	if status, text := p.do(t, "GET", "/oauth/status", ""); status != 200 || !strings.Contains(text, `"authenticated":false`) {
		t.Errorf("status: %d %s", status, text)
	}
}

func TestADamagedSessionKeyStopsTheStart(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, sessionKeyName)
	orphan := filepath.Join(dir, "."+sessionKeyName+".tmp") // of a start that was killed
	os.WriteFile(orphan, []byte("abc"), 0o600)
	first, err := sessionKey(dir)
	if err != nil || len(first) != sessionKeySize {
		t.Fatal(first, err)
	}
	if _, err := os.Stat(orphan); err == nil {
		t.Error("the orphan is still there")
	}
	if again, err := sessionKey(dir); err != nil || !bytes.Equal(again, first) {
		t.Errorf("the key is not kept: %v", err)
	}
	os.WriteFile(path, []byte("abc"), 0o600)
	if _, err := sessionKey(dir); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("a damaged key: %v", err)
	}
}

func TestAMistakeStopsTheStartWithOneLine(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	dir := t.TempDir()
	os.WriteFile(filepath.Join(dir, "bad.toml"), []byte("[gateway]\npoll_interval = 'soon'\n"), 0o600)
	os.WriteFile(filepath.Join(dir, "file"), nil, 0o600)
	for _, c := range []struct {
		args   string
		env    string
		status int
		says   string
	}{
		{"gateway --poll-interval=soon", "", 2, "--poll-interval: "},
		{"gateway --nosuch", "", 2, "unknown flag: --nosuch"},
		{"gateway extra", "", 2, "extra"},
		{"gateway --config=DIR/bad.toml", "", 1, dir + "/bad.toml:2: gateway.poll_interval: "},
		{"gateway", "SWITCHYARD_CONFIG=" + dir + "/bad.toml", 1, dir + "/bad.toml:2: gateway.poll_interval: "},
		{"gateway", "SWITCHYARD_AGENT_TIMEOUT=x", 1, "SWITCHYARD_AGENT_TIMEOUT: "},
		{"gateway --listen=0.0.0.0:0", "", 2, "admin token"},
		{"gateway", "SWITCHYARD_LISTEN=[::]:0", 1, "admin token"},
		{"gateway --data=DIR/data --listen=" + taken.Addr().String(), "", 1, "choose another address with --listen"},
		{"gateway --data=DIR/data --listen=localhost:" + taken.Addr().String()[len("127.0.0.1:"):], "", 1, "address already in use"},
		{"gateway --data=DIR/file", "", 1, dir + "/file: not a directory"},
		{"gateway --data=DIR/file/data", "", 1, dir + "/file"},
	} {
		cmd := switchyard(t, dir, strings.Fields(c.args)...)
		cmd.Env = append(cmd.Env, c.env)
		if status, says := refused(t, cmd); status != c.status || !strings.Contains(says, c.says) {
			t.Errorf("%s %s: %d, %s; want %d, %q", c.env, c.args, status, says, c.status, c.says)
		}
	}
}
