// Package gitlog finds the commits that mention a story, using the machine's git. It reads in the background, first the
// whole history and then only new commits, so that readers never wait.
package gitlog

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"switchyard/internal/board"
	"switchyard/internal/domain"
	"switchyard/internal/git"
	"switchyard/internal/wire"
)

const (
	// perStory is how many commits are kept for a story, from the newest.
	perStory = 50
	// poll is how often HEAD is checked for changes, which takes two system calls.
	poll = 250 * time.Millisecond
	// recheck is how often git is run regardless, in case a change does not show in the files checked or a repository
	// has been created.
	recheck = 10 * time.Second
	// maxPause is the longest pause after a failure. It grows with each.
	maxPause = time.Hour
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
	days    int // for which the moves are read

	movesLimit time.Duration
	work       *Work // nil for none

	mu      sync.RWMutex
	commits map[string][]*domain.Commit // by story, newest first; nil while there is no work tree
	branch  string
	moves   atomic.Pointer[Moves]

	// Only Run uses the fields below.
	repository repository
	opened     bool        // there is one
	head       string      // the commit up to which the history has been read
	view       *board.View // its stories have been searched for
	searched   map[string]bool
	failed     bool   // the last attempt
	movesOf    string // the HEAD from which the moves were read
	movesDue   time.Time
}

func New(o Options) *Log {
	l := &Log{Options: o, recheck: recheck, days: domain.PastDays, movesLimit: movesLimit}
	l.moves.Store(&Moves{ID: "unread"})
	return l
}

// Commits returns the newest commits, at most 50, whose message contains the story's id as a word, newest first. It is
// nil if there is no git or work tree, or nothing has been read yet.
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
	if l.work != nil {
		for _, commit := range l.work.now.Load().commits[story] {
			if !slices.ContainsFunc(list, func(c domain.Commit) bool { return c.Hash == commit.Hash }) {
				list = append(list, *commit)
			}
		}
		slices.SortStableFunc(list, func(a, b domain.Commit) int { return cmp.Compare(b.AtMS, a.AtMS) })
	}
	return list[:min(len(list), perStory)]
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
	seen, asked, pause := "", time.Time{}, time.Duration(0)
	for {
		view, now := l.Board.View(), l.repository.tree.HeadState()
		news := now != seen || l.opened && view != l.view
		if since := time.Since(asked); since >= pause && (since >= l.recheck || news) {
			began := time.Now()
			err := l.update(ctx, view)
			if err == nil {
				err = l.updateMoves(ctx)
			}
			l.report(ctx, err)
			asked, seen = time.Now(), now
			if took := asked.Sub(began); err != nil {
				pause = min(max(2*pause, l.recheck, movesFactor*took), maxPause)
			} else {
				pause = 0
			}
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
	if err != nil && !l.failed && ctx.Err() == nil {
		l.Log.Warn("gitlog: cannot read the history", "error", err)
	}
	l.failed = err != nil
}

func (l *Log) open() {
	tree, found := git.Find(l.Dir)
	if found && git.IsInstalled() { // otherwise there is no history to show
		l.repository = repository{git.Open(l.Dir), tree}
		l.opened, l.head, l.searched = true, "", nil
	}
}

// update reads new commits up to HEAD, and the whole history for stories of view that have not been searched for. If
// HEAD has moved to another line of history, it starts over. Commits of stories that have left the board are kept, up
// to a limit, in case they come back.
func (l *Log) update(ctx context.Context, view *board.View) error {
	if !l.opened {
		l.open()
	}
	if !l.opened {
		return nil
	}
	head, err := l.repository.Head(ctx)
	if err != nil {
		if _, found := git.Find(l.Dir); found && !git.IsNoRepository(err) {
			return err
		}
		l.opened = false // it is no longer there, or not yet
		l.publish(nil)
		return nil
	}
	var ids []string
	for _, stage := range view.Stages {
		for i := range stage.Stories {
			ids = append(ids, stage.Stories[i].ID)
		}
	}
	next := maps.Clone(l.commits)
	switch goesOn := head == l.head || l.repository.Contains(ctx, head, l.head); {
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
	if err := l.repository.count(ctx, l.commits, found); err != nil {
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
	if l.opened {
		l.branch = limit([]byte(l.repository.tree.Branch()))
	}
}
