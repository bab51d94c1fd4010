package main

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestADamagedDatabaseStopsTheStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "data", "switchyard.db")
	os.Mkdir(filepath.Dir(path), 0o700)
	damaged := bytes.Repeat([]byte("no database "), 1000)
	os.WriteFile(path, damaged, 0o600)
	status, says := refused(t, switchyard(t, dir, "gateway", "--listen=localhost:0", "--data=DIR/data"))
	if status != 1 || !strings.Contains(says, path) {
		t.Errorf("%d, %s", status, says)
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, damaged) {
		t.Errorf("the file was changed (%v)", err)
	}
}

func TestADamagedSessionKeyStopsTheStart(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, sessionKeyName)
	orphan := filepath.Join(dir, "."+sessionKeyName+".123.tmp") // of a start that was killed
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
		{"gateway --data=DIR/data --listen=" + taken.Addr().String(), "", 1, "address already in use"},
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
