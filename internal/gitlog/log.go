// Package gitlog finds the commits that mention a story, using the machine's git. It reads in the background, first the
// whole history and then only new commits, so that readers never wait.
package gitlog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"switchyard/internal/board"
	"switchyard/internal/domain"
	"switchyard/internal/wire"
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

type Options struct {
	// Dir is a directory, which need not be in a git work tree.
	Dir string
	// Board supplies the stories, and says what commits did to them.
	Board interface {
		View() *board.View
		Past() board.Past
	}
	Log *slog.Logger
}

// Log knows the commits of a work tree that mention stories.
type Log struct {
	Options
	recheck time.Duration
	days    int // of which the moves are read

	mu      sync.RWMutex
	commits map[string][]*domain.Commit // by story, newest first; nil while there is no work tree
	branch  string
	moves   atomic.Pointer[Moves]

	// Only Run uses the fields below.
	repository repository
	gitDir     string      // "" while there is no work tree
	head       string      // the commit up to which the history has been read
	view       *board.View // the stories that have been searched for
	searched   map[string]bool
	failed     bool   // the last attempt
	movesOf    string // from which the moves were read
	movesDue   time.Time
}

func New(o Options) *Log {
	l := &Log{Options: o, recheck: recheck, days: domain.PastDays}
	l.moves.Store(&Moves{ID: "unread"})
	return l
}

// Commits returns the newest commits, at most 50, whose message contains the story's id as a word, newest first. It is
// nil when there is no git or work tree, or nothing has been read yet.
func (l *Log) Commits(story string) wire.Commits {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.commits == nil {
		return nil
	}
	list := wire.Commits{}
	for _, commit := range l.commits[story] {
		list = append(list, *commit)
	}
	return list
}

func (l *Log) Branch() string {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.branch
}

// Run reads the history and then follows its changes until ctx is cancelled. It always returns nil.
func (l *Log) Run(ctx context.Context) error {
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	seen, asked := "", time.Time{}
	for {
		view, now := l.Board.View(), l.signature()
		if time.Since(asked) >= l.recheck || now != seen || l.gitDir != "" && view != l.view {
			asked, seen = time.Now(), now
			err := l.update(ctx, view)
			if err == nil || l.gitDir == "" {
				err = errors.Join(err, l.updateMoves(ctx))
			}
			l.report(ctx, err)
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

// isNoRepository reports whether git failed because there is no repository. It goes by the message: the exit status,
// 128, has other causes as well.
func isNoRepository(err error) bool {
	_, exited := errors.AsType[*exec.ExitError](err)
	return exited && strings.Contains(err.Error(), "not a git repository")
}

func (l *Log) open(ctx context.Context) error {
	git, err := exec.LookPath("git")
	if err != nil {
		return nil // not an error: there is no history to show
	}
	l.repository = repository{git, l.Dir}
	text, err := l.repository.output(ctx, "rev-parse", "--is-inside-work-tree", "--absolute-git-dir")
	if dir, inside := strings.CutPrefix(text, "true\n"); inside && err == nil {
		l.gitDir, l.head, l.searched = filepath.Clean(dir), "", nil
	}
	return err
}

// update reads new commits up to HEAD, and the whole history for stories of view that have not been searched for. When
// HEAD has moved to another line of history, it starts over. Commits of stories that have left the board are kept, up
// to a limit, in case they come back.
func (l *Log) update(ctx context.Context, view *board.View) error {
	if l.gitDir == "" {
		if err := l.open(ctx); err != nil || l.gitDir == "" {
			return err
		}
	}
	head, err := l.repository.head(ctx)
	if err != nil { // the work tree no longer exists
		l.gitDir = ""
		l.publish(nil)
		return err
	}
	var ids []string
	for _, stage := range view.Stages {
		for i := range stage.Stories {
			ids = append(ids, stage.Stories[i].ID)
		}
	}
	next := maps.Clone(l.commits)
	switch goesOn := head == l.head || l.repository.contains(ctx, head, l.head); {
	case !goesOn || next == nil || len(l.searched) > 2*len(ids)+1000:
		next, l.searched = map[string][]*domain.Commit{}, map[string]bool{}
	case head != l.head:
		if err := l.read(ctx, next, slices.Collect(maps.Keys(l.searched)), head, "^"+l.head); err != nil {
			return err
		}
	}
	missing := slices.DeleteFunc(ids, func(id string) bool { return l.searched[id] })
	if len(missing) > 0 && head != "" {
		if err := l.read(ctx, next, missing, head); err != nil {
			return err
		}
		for _, id := range missing {
			l.searched[id] = true
		}
	}
	l.head, l.view = head, view
	l.publish(next)
	return nil
}

// read adds the commits of revisions that mention any of ids to next.
func (l *Log) read(ctx context.Context, next map[string][]*domain.Commit, ids []string, revisions ...string) error {
	found, err := l.repository.history(ctx, newWords(ids), revisions...)
	if err != nil {
		return err
	}
	counted, commits := map[string]*domain.Commit{}, map[string]*domain.Commit{}
	for _, list := range l.commits {
		for _, commit := range list {
			counted[commit.Hash] = commit
		}
	}
	for _, list := range found {
		for _, commit := range list {
			if known := counted[commit.Hash]; known != nil && known.Files > 0 { // to count takes git a hundred times as long
				*commit = *known
			} else {
				commits[commit.Hash] = commit
			}
		}
	}
	if err := l.repository.count(ctx, commits); err != nil {
		return err
	}
	for id, list := range found {
		list = append(list, next[id]...)
		slices.SortStableFunc(list, func(a, b *domain.Commit) int { return cmp.Compare(b.AtMS, a.AtMS) })
		next[id] = list[:min(len(list), perStory)]
	}
	return nil
}

func (l *Log) publish(commits map[string][]*domain.Commit) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.commits, l.branch = commits, ""
	if l.gitDir != "" {
		text, _ := os.ReadFile(filepath.Join(l.gitDir, "HEAD"))
		if branch, ok := strings.CutPrefix(string(text), "ref: refs/heads/"); ok {
			l.branch = limit([]byte(strings.TrimSpace(branch)))
		}
	}
}

// signature changes when HEAD does. It covers two files: HEAD, which changes with the branch, and HEAD's reflog.
func (l *Log) signature() (s string) {
	for _, name := range []string{"HEAD", filepath.Join("logs", "HEAD")} {
		if info, err := os.Stat(filepath.Join(l.gitDir, name)); err == nil && l.gitDir != "" {
			s += fmt.Sprintln(name, info.Size(), info.ModTime())
		}
	}
	return s
}
