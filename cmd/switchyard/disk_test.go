//go:build linux

package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestAFullDiskIsSaidAndLosesNothing needs a small file system, which only root can mount.
func TestAFullDiskIsSaidAndLosesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	small := filepath.Join(dir, "small")
	if err := os.Mkdir(small, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", small, "tmpfs", 0, "size=1m,mode=0700"); err != nil {
		t.Logf("no file system to fill: %v", err)
		return
	}
	t.Cleanup(func() {
		if err := unix.Unmount(small, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	begin := func() *process {
		return start(t, switchyard(t, dir, "gateway", "--listen=localhost:0", "--data=DIR/small/data", "--bot-config=DIR/small/bot.toml"))
	}
	p := begin()
	expect := func(status int, text, method, path, body string) {
		t.Helper()
		if got, answer := p.do(t, method, path, body); got != status || !strings.Contains(answer, text) {
			t.Errorf("%s %s: %d %s, want %d with %q", method, path, got, answer, status, text)
		}
	}
	const dead = `"url":"http://127.0.0.1:1"`
	expect(200, "before", "POST", "/api/gateway/projects", `{"name":"before",`+dead+`}`)
	expect(200, "true", "POST", "/api/gateway/bot-config", `{"transport":"team","team_bot_token":"old"}`)

	filler := fill(t, filepath.Join(small, "filler"))
	expect(500, `"ok":false`, "POST", "/api/gateway/bot-config", `{"transport":"team","team_bot_token":"new"}`)
	expect(200, `"old"`, "GET", "/api/gateway/bot-config", "")
	refused := 0
	for i := range 300 { // the write-ahead log may still have room for some
		name := strings.Repeat("x", 90) + string(rune('a'+i%26)) + string(rune('a'+i/26))
		if status, _ := p.do(t, "POST", "/api/gateway/projects", `{"name":"`+name+`",`+dead+`}`); status == 400 {
			refused++
			if status, list := p.do(t, "GET", "/api/gateway", ""); status != 200 || strings.Contains(list, name) {
				t.Errorf("a refused project is in the registry: %d", status)
			}
			break
		}
	}
	if refused == 0 {
		t.Error("300 projects were stored on a full disk")
	}
	expect(200, "ok", "GET", "/healthz", "")

	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	expect(200, "after", "POST", "/api/gateway/projects", `{"name":"after",`+dead+`}`)
	expect(200, "true", "POST", "/api/gateway/bot-config", `{"transport":"team","team_bot_token":"new"}`)
	p.stop(t, syscall.SIGTERM)
	p = begin()
	expect(200, `"after"`, "GET", "/api/gateway", "")
	expect(200, `"before"`, "GET", "/api/gateway", "")
}

// fill writes a file until nothing more fits.
func fill(t *testing.T, path string) string {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for size := 64 << 10; size > 0; size /= 2 {
		for err = nil; err == nil; {
			_, err = f.Write(make([]byte, size))
		}
	}
	return path
}
