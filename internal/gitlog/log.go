// Package gitlog finds the commits that mention a story, using the machine's git. It reads in the background, first the
// whole history and then only new commits, so that readers never wait.
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
	// perStory is how many commits, the newest, are kept for a story.
	perStory = 50
	// poll is how often HEAD is checked for changes, which takes two system calls.
	poll = 250 * time.Millisecond
	// recheck is how often git is run regardless, in case a change does not show in the files checked or a repository has
	// been created.
	recheck = 10 * time.Second
)

// Options configure a Log.
type Options struct {
	// Dir is a directory, which need not be in a git work tree.
	Dir string
	// Board supplies the stories.
	Board interface{ View() *board.View }
	Log   *slog.Logger
}

// Log knows the commits of a work tree that mention stories.
type Log struct {
	Options
	recheck time.Duration

	mu      sync.RWMutex
	commits map[string][]*Commit // by story, newest first; nil while there is no work tree

	// Only Run uses the fields below.
	repository repository
	gitDir     string      // "" while there is no work tree
	head       string      // the commit up to which the history has been read
	view       *board.View // the stories that have been searched for
	searched   map[string]bool
	failed     bool
}

// New returns a Log that is empty until Run is called.
func New(o Options) *Log { return &Log{Options: o, recheck: recheck} }

// Commits returns the newest commits, at most 50, whose message contains the story's id as a word, newest first. It is
// nil when there is no git or work tree, or nothing has been read yet. The caller must not change it.
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

// Run reads the history and then follows its changes until ctx is cancelled. It always returns nil.
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

// report logs once that the history cannot be read. A missing repository is not an error.
func (l *Log) report(ctx context.Context, err error) {
	if isNoRepository(err) {
		err = nil
	}
	if err != nil && !l.failed && ctx.Err() == nil {
		l.Log.Warn("gitlog: cannot read the history", "error", err)
	}
	l.failed = err != nil
}

// open finds the work tree that contains the directory, if any.
func (l *Log) open(ctx context.Context) error {
	git, err := exec.LookPath("git")
	if err != nil {
		return nil // not an error: there is no history to show
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

// close forgets a work tree that no longer exists.
func (l *Log) close() {
	l.gitDir = ""
	l.publish(nil)
}

func (l *Log) publish(commits map[string][]*Commit) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.commits = commits
}
