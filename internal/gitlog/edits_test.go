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

// edited is a repository with a work tree that has a directory of its own, and what is known of it.
type edited struct {
	*testing.T
	dir, tree string
	work      *gitlog.Work
}

func newEdited(t *testing.T) edited {
	t.Helper()
	e := edited{T: t, dir: t.TempDir(), tree: filepath.Join(t.TempDir(), "tree")}
	e.write(e.dir, "work/1_backlog/7_story.md", "# Story\n")
	e.write(e.dir, "src/deep/code", "1\n")
	for _, args := range [][]string{
		{"init", "-q"}, {"add", "."}, {"commit", "-qm", "base"}, {"worktree", "add", "-q", "-b", "7_story", e.tree},
	} {
		gittest.Git(t, e.dir, args...)
	}
	e.write(e.tree, "src/own/code", "1\n")
	gittest.Git(t, e.tree, "add", ".")
	gittest.Git(t, e.tree, "commit", "-qm", "a directory that the base does not have")

	options := board.Options{Dir: filepath.Join(e.dir, "work"), Log: slog.New(slog.DiscardHandler), Record: func(...feed.Notification) {}}
	b, err := board.Open(options)
	if err != nil {
		t.Fatal(err)
	}
	e.work = gitlog.NewWork(gitlog.New(gitlog.Options{Dir: options.Dir, Board: b, Log: options.Log}), b, true)
	return e
}

// follow starts following the work tree until the test ends.
func (e edited) follow() {
	ctx, cancel := context.WithCancel(e.Context())
	ended := make(chan error)
	go func() { ended <- e.work.Run(ctx) }()
	e.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			e.Error(err)
		}
	})
}

func (e edited) write(in, name, text string) {
	e.Helper()
	(&project{t: e.T, dir: in}).write(name, text)
}

func (e edited) shows(what string, uncommitted, added int) {
	e.Helper()
	waittest.Until(e, what, func() bool {
		list, _ := e.work.Of("7_story")
		return len(list) == 1 && list[0].Uncommitted == uncommitted && list[0].Added == added
	})
}

// What is edited in a work tree shows at once, where the system says so: nothing else is looked at for an hour here.
func TestAnEditInAWorkTreeShows(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("edits are noticed on Linux only")
	}
	t.Parallel()
	e := newEdited(t)
	e.work.SetAges(time.Hour, 0)
	e.follow()
	e.shows("the work tree", 0, 1)
	e.write(e.tree, "src/deep/code", "1\n2\n")
	e.shows("an edit in place", 1, 2)
	e.write(e.tree, "src/own/code", "1\n2\n3\n")
	e.shows("one in its own directory", 2, 4)
	e.write(e.tree, "new/deep/a", "1\n")
	e.shows("a file that git does not know, in a new directory", 3, 4)
	e.write(e.tree, "new/deep/b", "1\n")
	e.shows("another one beside it", 4, 4)
	if err := os.RemoveAll(filepath.Join(e.tree, "src", "deep")); err != nil {
		t.Fatal(err)
	}
	e.shows("a directory that is gone", 4, 3)
	e.write(e.tree, "src/deep/code", "1\n")
	e.shows("and is there again", 3, 3)
	e.write(e.tree, "src/deep/code", "1\n2\n")
	e.shows("with an edit", 4, 4)
}

// Where not every directory may be watched, the work tree is looked at from time to time.
func TestAnEditInADirectoryThatIsNotWatchedShows(t *testing.T) {
	t.Parallel()
	e := newEdited(t)
	e.work.SetMostWatched(1)
	e.work.SetAges(0, 0)
	e.follow()
	e.shows("the work tree", 0, 1)
	e.write(e.tree, "src/deep/code", "1\n2\n")
	e.shows("an edit", 1, 2)
}
