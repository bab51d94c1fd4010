// Package gitlog finds the commits that mention a story, through the git on the machine. Everything is read in the
// background: once whole, then only what is new. It must never know who asks, nor make anyone wait.
package gitlog

import (
	"context"
	"log/slog"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"switchyard/internal/board"
)

const (
	// perStory is the number of commits that are kept of a story, the newest.
	perStory = 50
	// poll is how often it checks for a change of HEAD: two system calls.
	poll = 250 * time.Millisecond
	// recheck is how often it asks git all the same, should a change not show in the files that it checks, or should
	// there be a repository at last.
	recheck = 10 * time.Second
)

// Options are what a Log is made of.
type Options struct {
	// Dir is a directory, in a git work tree or not.
	Dir string
	// Board says which stories there are.
	Board interface{ View() *board.View }
	Log   *slog.Logger
}

// Log knows the commits of a work tree that mention stories.
type Log struct {
	Options
	recheck time.Duration

	mu      sync.RWMutex
	commits map[string][]*Commit // by story, the newest first; nil while there is no work tree

	// What follows belongs to Run.
	repository repository
	gitDir     string      // "" while there is no work tree
	head       string      // whose history has been read
	view       *board.View // whose stories have been searched for
	searched   map[string]bool
	failed     bool
}

// New returns a Log that knows nothing until it runs.
func New(o Options) *Log { return &Log{Options: o, recheck: recheck} }

// Commits returns the newest commits, at most 50, whose message has the story's id as a word, the newest first.
// It is nil where there is no git, no work tree, or nothing has been read yet. The caller must not change it.
func (l *Log) Commits(story string) []*Commit {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.commits == nil {
		return nil
	}
	if list := l.commits[story]; list != nil {
		return list
	}
	return []*Commit{}
}

// Run reads the history, and what is new in it, until ctx is cancelled, and then returns nil.
func (l *Log) Run(ctx context.Context) error {
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	var seen signature
	var asked time.Time
	for {
		view, now := l.Board.View(), l.signature()
		if due := asked.IsZero() || time.Since(asked) >= l.recheck; due || now != seen {
			asked, seen = time.Now(), now
			l.report(ctx, l.update(ctx, view))
		} else if l.gitDir != "" && view != l.view {
			l.report(ctx, l.add(ctx, view))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// report logs once that the history cannot be read. That there is none is nothing wrong.
func (l *Log) report(ctx context.Context, err error) {
	if isNoRepository(err) {
		err = nil
	}
	if err != nil && !l.failed && ctx.Err() == nil {
		l.Log.Warn("gitlog: cannot read the history", "error", err)
	}
	l.failed = err != nil
}

// open finds the work tree that the directory is in, if there is one.
func (l *Log) open(ctx context.Context) error {
	git, err := exec.LookPath("git")
	if err != nil {
		return nil // then there is nothing to show, and nothing wrong
	}
	l.repository = repository{git, l.Dir}
	inside, err := l.repository.output(ctx, "rev-parse", "--is-inside-work-tree")
	if err != nil {
		return err
	}
	if inside != "true" {
		return nil
	}
	dir, err := l.repository.output(ctx, "rev-parse", "--absolute-git-dir")
	if err != nil {
		return err
	}
	l.gitDir, l.head, l.view = filepath.Clean(dir), "", nil
	return nil
}

// close forgets a work tree that is no more.
func (l *Log) close() {
	l.gitDir = ""
	l.publish(nil)
}

func (l *Log) publish(commits map[string][]*Commit) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.commits = commits
}
