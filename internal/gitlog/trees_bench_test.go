//go:build unix

package gitlog_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"switchyard/internal/board"
	"switchyard/internal/feed"
	"switchyard/internal/gitlog"
	"switchyard/internal/gittest"
	"switchyard/internal/waittest"
)

// processor returns the time that this process and those that it has waited for have had of a processor.
func processor() (own, children time.Duration) {
	of := func(who int) time.Duration {
		var usage syscall.Rusage
		_ = syscall.Getrusage(who, &usage) // it fails only for another who
		return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	}
	return of(syscall.RUSAGE_SELF), of(syscall.RUSAGE_CHILDREN)
}

// BenchmarkTrees50 measures a look at 50 work trees and 200 branches with 600 commits of their own of a repository of
// 1,000 files, when all of it is new, as a whole and in multiples of what git's own commands take of it, and what
// following them costs while nothing changes.
func BenchmarkTrees50(b *testing.B) {
	const trees, branches, stories = 50, 200, 200
	dir, beside := b.TempDir(), b.TempDir()
	write := func(path, text string) {
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			b.Fatal(err)
		}
	}
	for i := range 1000 {
		write(filepath.Join(dir, "src", fmt.Sprint(i%40), fmt.Sprint(i)), fmt.Sprintf("line\nof %d\n", i))
	}
	for i := range stories {
		write(filepath.Join(dir, "work", "1_backlog", fmt.Sprintf("%d_story.md", i)), fmt.Sprintf("# Story %d\n", i))
	}
	for _, stage := range []string{"2_current", "3_done"} {
		write(filepath.Join(dir, "work", stage, ".keep"), "")
	}
	git := func(in string, args ...string) string { return gittest.Git(b, in, args...) }
	git(dir, "init", "-q")
	git(dir, "config", "gc.auto", "0")
	git(dir, "add", ".")
	git(dir, "commit", "-qm", "base")
	for i := range branches {
		branch := fmt.Sprintf("story/%d_story", i)
		if git(dir, "checkout", "-q", "-b", branch, "main"); i%2 == 0 {
			git(dir, "mv", fmt.Sprintf("work/1_backlog/%d_story.md", i), "work/2_current/")
		}
		for range 3 {
			write(filepath.Join(dir, "src", fmt.Sprint(i%40), fmt.Sprint(i)), fmt.Sprint(time.Now(), "\n"))
			git(dir, "commit", "-qam", fmt.Sprintf("work on %d_story", i))
		}
	}
	git(dir, "checkout", "-q", "main")
	for i := range trees {
		git(dir, "worktree", "add", "-q", filepath.Join(beside, fmt.Sprint(i)), fmt.Sprintf("story/%d_story", i))
		write(filepath.Join(beside, fmt.Sprint(i), "src", "0", "0"), "not committed\n")
		git(filepath.Join(beside, fmt.Sprint(i)), "status") // it writes the index, as the first git of whoever works there does
	}
	write(filepath.Join(dir, "src", "1", "1"), "main\n")
	git(dir, "commit", "-qam", "main goes on")
	log := slog.New(slog.DiscardHandler)
	open := func() (*board.Board, *gitlog.Work, *gitlog.Log) {
		options := board.Options{Dir: filepath.Join(dir, "work"), Log: log, Record: func(...feed.Notification) {}}
		stories, err := board.Open(options)
		if err != nil {
			b.Fatal(err)
		}
		commits := gitlog.New(gitlog.Options{Dir: options.Dir, Board: stories, Log: log})
		return stories, gitlog.NewWork(commits, stories, true), commits
	}
	for b.Loop() {
		_, work, _ := open()
		own, git := processor()
		work.Refresh(b.Context())
		ownAfter, gitAfter := processor()
		own, git = ownAfter-own, gitAfter-git
		b.ReportMetric((own + git).Seconds(), "s-of-CPU")
		b.ReportMetric(float64(own+git)/float64(git), "x-of-git's")
		if list, _ := work.Of("7_story"); len(list) != 1 || list[0].Ahead != 3 {
			b.Fatalf("%+v", list)
		}
	}
	stories7, work, commits := open()
	ctx, cancel := context.WithCancel(b.Context())
	var running sync.WaitGroup
	for _, run := range []func(context.Context) error{stories7.Run, work.Run, commits.Run} {
		running.Go(func() { _ = run(ctx) })
	}
	waittest.Until(b, "rest", func() bool { list, _ := work.Of("7_story"); return len(list) == 1 && list[0].Uncommitted == 1 })
	time.Sleep(5 * time.Second) // until what follows a look is over
	own, git0 := processor()
	at := time.Now()
	time.Sleep(time.Minute) // in which each board is read once without any event
	ownAfter, gitAfter := processor()
	b.ReportMetric(100*(ownAfter-own+gitAfter-git0).Seconds()/time.Since(at).Seconds(), "%-of-a-core-at-rest")
	cancel()
	running.Wait()
}
