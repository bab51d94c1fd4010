package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestNoForeignTextCommandsATerminal: directories of a repository and answers of a server are shown as they are.
func TestNoForeignTextCommandsATerminal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	named := filepath.Join(dir, "a\x1b[31m\u202eb")
	if err := os.MkdirAll(filepath.Join(named, "work", "1_backlog"), 0o755); err != nil {
		t.Fatal(err)
	}
	const shown = `a\u001b[31m\u202eb`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, filepath.Base(named), http.StatusTeapot)
	}))
	defer server.Close()
	for _, args := range [][]string{
		{"layouts", dir},
		{"layouts", named},
		{"project", "--name", "p", "--work", dir},
		{"agent", "--gateway", server.URL, "--token", "swj_x", "--state", filepath.Join(dir, "agent.json")},
	} {
		var out bytes.Buffer
		run(t.Context(), args, strings.NewReader(""), &out, &out)
		if text := out.String(); !strings.Contains(text, shown) || strings.ContainsAny(text, "\x1b\r\u202e") {
			t.Errorf("%s: %q", args[0], text)
		}
	}
}
