package gitlog_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"switchyard/internal/board"
	"switchyard/internal/feed"
	"switchyard/internal/gitlog"
	"switchyard/internal/gittest"
	"switchyard/internal/waittest"
)

// What is edited in a work tree shows at once, where the system says so: nothing else is looked at for an hour here.
func TestAnEditInAWorkTreeShows(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("edits are noticed on Linux only")
	}
	dir, tree := t.TempDir(), filepath.Join(t.TempDir(), "tree")
	write := func(in, name, text string) {
		t.Helper()
		name = filepath.Join(in, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	write(dir, "work/1_backlog/7_story.md", "# Story\n")
	write(dir, "src/deep/code", "1\n")
	for _, args := range [][]string{
		{"init", "-q"}, {"add", "."}, {"commit", "-qm", "base"}, {"worktree", "add", "-q", "-b", "7_story", tree},
	} {
		gittest.Git(t, dir, args...)
	}
	write(tree, "src/own/code", "1\n")
	gittest.Git(t, tree, "add", ".")
	gittest.Git(t, tree, "commit", "-qm", "a directory that the base does not have")

	options := board.Options{Dir: filepath.Join(dir, "work"), Log: slog.New(slog.DiscardHandler), Record: func(...feed.Notification) {}}
	b, err := board.Open(options)
	if err != nil {
		t.Fatal(err)
	}
	log := gitlog.New(gitlog.Options{Dir: options.Dir, Board: b, Log: options.Log})
	work := gitlog.NewWork(log, b, true)
	work.SetAges(time.Hour, 0)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- work.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	shows := func(what string, uncommitted, added int) {
		t.Helper()
		waittest.Until(t, what, func() bool {
			list, _ := work.Of("7_story")
			return len(list) == 1 && list[0].Uncommitted == uncommitted && list[0].Added == added
		})
	}
	shows("the work tree", 0, 1)
	write(tree, "src/deep/code", "1\n2\n")
	shows("an edit in place", 1, 2)
	write(tree, "src/own/code", "1\n2\n3\n")
	shows("one in its own directory", 2, 4)
	write(tree, "new/deep/a", "1\n")
	shows("a file that git does not know, in a new directory", 3, 4)
	write(tree, "new/deep/b", "1\n")
	shows("another one beside it", 4, 4)
	if err := os.RemoveAll(filepath.Join(tree, "src", "deep")); err != nil {
		t.Fatal(err)
	}
	shows("a directory that is gone", 4, 3)
	write(tree, "src/deep/code", "1\n")
	shows("and is there again", 3, 3)
	write(tree, "src/deep/code", "1\n2\n")
	shows("with an edit", 4, 4)
}
