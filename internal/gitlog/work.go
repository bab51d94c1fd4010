package gitlog

import (
	"context"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"switchyard/internal/board"
	"switchyard/internal/domain"
	"switchyard/internal/git"
	"switchyard/internal/supervise"
	"switchyard/internal/wire"
)

const (
	// maxTrees and maxBranches are how many work trees and branches are read, from the newest, and branchDays how old a
	// branch's tip may be.
	maxTrees, maxBranches, branchDays = 50, 200, 90
	// workRecheck is how often to look for uncommitted changes, workLook how often for places that show in no file.
	workRecheck, workLook = 5 * time.Second, 30 * time.Second
	// maxMissing is how many missing work trees are named in the log.
	maxMissing = 1000
	// pollTree is how much longer the pause between looks at files gets with each work tree.
	pollTree = 20 * time.Millisecond
)

// Work knows the work trees and branches of a board's repository, joins the board with the stories in them, and knows
// the work on its stories.
type Work struct {
	log       *Log
	board     *board.Board
	withTrees bool
	readers   chan struct{} // holds a value for each caller reading changes
	known     chan struct{} // closed once all has been read
	first     sync.Once     // closes it
	now       atomic.Pointer[works]

	mu       sync.Mutex // guards what is below
	facts    *facts
	numbers  map[string]numbers // by merge base and head
	merges   map[string]git.Merged
	clashes  map[string]time.Time         // by key of the place; nil before the first look
	statuses map[string]status            // by work tree
	linked   map[string]map[string]string // by place, while it is ahead of the base
	ahead    map[string]bool              // whether places were ahead when last published
	copies   map[string]string            // directories with the boards of commits
	temp     string                       // where they are, "" for nowhere yet
	remove   func() error                 // removes temp
	missing  map[string]bool
	pending  []*board.Board
	failures int // in a row

	edits     edits
	watched   map[string]bool // work trees in which every edit is noticed
	statusAge time.Duration
	editAge   time.Duration
}

// works is what is known at a moment. It is immutable.
type works struct {
	base    *wire.Base
	trees   []string
	links   []domain.PlaceLink
	stories map[string][]wire.Work
	commits map[string][]*domain.Commit
	version string
}

// NewWork returns the work in the repository of a log. Without trees it knows only branches.
func NewWork(log *Log, b *board.Board, withTrees bool) *Work {
	w := &Work{
		log: log, board: b, withTrees: withTrees, numbers: map[string]numbers{}, merges: map[string]git.Merged{},
		statuses: map[string]status{}, linked: map[string]map[string]string{}, copies: map[string]string{},
		missing: map[string]bool{}, readers: make(chan struct{}, maxReaders),
		known: make(chan struct{}), edits: edits{most: mostWatched()}, statusAge: statusAge, editAge: editAge,
	}
	w.now.Store(&works{})
	log.work = w
	git.SweepTemp()
	return w
}

// Base returns the commit that places are compared with, nil without git, and Trees the paths of the work trees.
func (w *Work) Base() *wire.Base { return w.now.Load().base }

func (w *Work) Trees() []string { return append([]string{}, w.now.Load().trees...) }

// Links are the places that are linked to a single story.
func (w *Work) Links() []domain.PlaceLink { return w.now.Load().links }

// Version changes whenever what is known does.
func (w *Work) Version() string { return w.now.Load().version }

// Of returns the first places of a story, and how many there are; nil without git.
func (w *Work) Of(story string) (list []wire.Work, count int) {
	now := w.now.Load()
	if now.base == nil {
		return nil, 0
	}
	all := now.stories[story]
	return append([]wire.Work{}, all[:min(len(all), wire.MaxWork)]...), len(all)
}

// Known is closed once the repository has been read for the first time: until then stories are where DIR has them.
func (w *Work) Known() <-chan struct{} { return w.known }

// Run follows the repository until ctx ends.
func (w *Work) Run(ctx context.Context) error {
	loops := supervise.New(ctx, w.log.Log)
	defer loops.Wait()
	defer w.close()
	w.edits.open()
	defer w.edits.close()
	loops.Go("edits in work trees", w.edits.run)
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	var state, seen string
	var view *board.View
	var polled, asked, looked time.Time
	var pause time.Duration
	for {
		if time.Since(polled) >= time.Duration(len(w.now.Load().trees))*pollTree {
			state, polled = w.state(), time.Now()
		}
		now := w.log.Board.View()
		since := time.Since(asked)
		edited := since >= w.editAge && w.edits.isPending()
		if since >= pause && (state != seen || now != view || edited || since >= workRecheck) {
			began := time.Now()
			looks := state != seen || now != view || w.failures > 0 || time.Since(looked) >= workLook
			err := w.update(ctx, looks)
			if looks {
				looked = began
			}
			if err != nil && w.failures == 0 && ctx.Err() == nil {
				w.log.Log.Warn("gitlog: cannot read work trees and branches", "error", err)
			}
			if w.failures++; err == nil {
				w.failures = 0
			}
			w.first.Do(func() { close(w.known) })
			asked, seen, view = time.Now(), state, now
			pause = w.rest(asked.Sub(began))
		}
		w.mu.Lock()
		opened := w.pending
		w.pending = nil
		w.mu.Unlock()
		for _, b := range opened {
			loops.Go("board of a work tree", b.Run)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// Refresh reads everything again.
func (w *Work) Refresh(ctx context.Context) { _ = w.update(ctx, true) }

func (w *Work) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if clear(w.copies); w.temp != "" {
		_ = w.remove()
		w.temp = ""
	}
}

// state changes whenever a branch or the HEAD of a work tree does.
func (w *Work) state() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	tree, found := git.Find(w.log.Dir)
	if !found {
		return ""
	}
	var dirs []string
	var state strings.Builder
	state.WriteString(tree.HeadState())
	if w.facts != nil {
		for _, p := range w.facts.places {
			if p.worktree != "" {
				state.WriteString(p.tree.State())
			}
			if dir := path.Join("refs/heads", path.Dir(p.branch)); !slices.Contains(dirs, dir) {
				dirs = append(dirs, dir)
			}
		}
	}
	return state.String() + tree.RefsState(dirs)
}

// update reads what has changed and publishes it. Unless looks is set, only known places count.
func (w *Work) update(ctx context.Context, looks bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	tree, found := git.Find(w.log.Dir)
	if !found || !git.IsInstalled() {
		w.forget()
		return nil
	}
	r := repository{git.Open(w.log.Dir), tree}
	if looks || w.facts == nil {
		found, err := w.readPlaces(ctx, r)
		if err != nil || !found {
			return err
		}
	}
	if err := w.readStatuses(ctx, r); err != nil {
		return err
	}
	w.watchEdits() // in directories that are new there, too
	w.publish()
	return nil
}

func (w *Work) readPlaces(ctx context.Context, r repository) (found bool, err error) {
	next, err := w.look(ctx, r)
	if err != nil || next == nil {
		if git.IsNoRepository(err) || err == nil {
			w.forget()
			return false, nil
		}
		return false, err
	}
	if w.facts != nil && w.facts.signature == next.signature {
		return true, nil
	}
	before := w.facts
	if err := w.read(ctx, r, next); err != nil {
		return false, err
	}
	w.facts = next
	w.watchEdits()
	return true, w.join(ctx, r, before)
}

func (w *Work) forget() {
	if w.facts != nil {
		w.facts = nil
		w.board.Join(nil)
	}
	w.now.Store(&works{})
}
