//go:build unix

package board

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// A pipe without a writer holds whoever opens it.
func TestPipesStopNoStartThatSweeps(t *testing.T) {
	for _, layout := range []string{"", "openspec"} {
		l := newLive(t, map[string]string{"1_backlog/a.md": "x", "2_current/.keep": "", "openspec/changes/a/tasks.md": "- [ ] x"})
		left := tempPrefix + "left" + tempSuffix
		for _, name := range []string{"pipe", "9_pipe", "1_backlog/p.md", "openspec/changes/a/proposal.md", "1_backlog/" + left} {
			if err := unix.Mkfifo(filepath.Join(l.dir, name), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := Open(Options{Dir: l.dir, Layout: layout, Log: l.log, Record: l.record, AllowWrites: true}); err != nil {
			t.Error(err)
		}
		if _, err := os.Lstat(filepath.Join(l.dir, "1_backlog", left)); layout == "" && err == nil {
			t.Error("what a killed process left is still there")
		}
	}
}
