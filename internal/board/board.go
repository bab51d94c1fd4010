// Package board watches the work items of one project in the files of some tool: its layout. It reads them, finds what
// changed between two scans, decides when to scan again, and changes them. It must never know who uses the results.
package board

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"log/slog"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/feed"
	"switchyard/internal/git"
)

type Options struct {
	Dir    string // in the stages layout, the default stages are created if it has none
	Layout string // "" for stages
	State  string // where reasons are kept for which the board's files have no place, "" for nowhere
	Log    *slog.Logger
	// Record receives the notifications of each scan that found changes, in one call. By then View shows the changes.
	Record      func(...feed.Notification)
	AllowWrites bool   // enables Change and Create
	CommitMoves bool   // whether these commit what they write, where git tracks the board
	AllowMerges bool   // enables Merge
	MergeCheck  string // a command that must succeed before each merge, "" for none
	// Refresh, if not nil, reads the places again; it has called Join by the time it returns.
	Refresh func(context.Context)
}

// Board is a watched work directory.
type Board struct {
	dir, kind   string // kind is the layout
	log         *slog.Logger
	record      func(...feed.Notification)
	allowWrites bool
	commitMoves bool
	readers     chan struct{} // limits how many stories are read at the same time
	instance    string        // prefix of its views' versions
	views       atomic.Int64  // the number of views so far
	own         atomic.Pointer[View]
	view        atomic.Pointer[View] // own, joined with what stands in other places
	options     Options
	joined      otherPlaces
	place       *member                           // the place that this is the board of, nil for the main board
	failures    atomic.Pointer[map[string]string] // by story
	running     atomic.Pointer[context.Context]   // ends when the board no longer runs

	mu      sync.Mutex // guards the fields below, and the layout's methods except lock and past
	layout  layout
	tracker tracker
	faults  map[string]bool // logged failures of the last scan
	known   []domain.Fault  // of files
	head    git.Reflog      // of the work tree
	heads   heads
	kept    notes                     // where merge failures are
	cleared map[string]clearedFailure // the last one of each story

	openWatcher func() (watcher, error)
	watcher     watcher // the zero value while there is none
	watched     bool    // everything was already watched when the last scan read it
}

// Open scans the work directory for the first time: what is already there causes no notifications. It returns an error
// if the directory cannot be read or the default stages cannot be created.
func Open(o Options) (*Board, error) { return open(o, nil) }

func open(o Options, place *member) (*Board, error) {
	b := &Board{
		options: o, place: place,
		dir: filepath.Clean(o.Dir), kind: o.Layout, log: o.Log, record: o.Record, allowWrites: o.AllowWrites,
		commitMoves: o.CommitMoves, instance: rand.Text(), readers: make(chan struct{}, maxReaders),
		faults: map[string]bool{}, openWatcher: openWatcher,
	}
	var err error
	if b.layout, err = b.open(o); err != nil {
		return nil, err
	}
	if place == nil {
		b.openMerges(o)
	}
	if _, err := b.scan(nil, false); err != nil {
		return nil, err
	}
	return b, nil
}

func (b *Board) open(o Options) (layout, error) {
	if b.Layout() == domain.LayoutStages {
		if b.place == nil {
			if err := makeStages(o.Dir); err != nil {
				return nil, err
			}
		}
		if o.AllowWrites {
			b.report("remove temporary files", sweepTemp(o.Dir))
		}
		s := &scanner{dir: b.dir, watch: b.watch}
		if b.place != nil {
			s.passes = b.place.isAtBase
		}
		return s, nil
	}
	for _, kind := range kinds {
		if kind.name == o.Layout {
			notes, err := openNotes(o.State, o.Dir, o.Layout)
			return &units{
				dir: b.dir, watch: b.watch, open: kind.opens, log: o.Log, notes: notes, sweeps: o.AllowWrites,
				units: map[string]*unit{}, waits: map[string]time.Time{},
			}, err
		}
	}
	return nil, domain.Errorf(domain.Invalid, "there is no layout %q", limit(o.Layout))
}

func (b *Board) Layout() string { return cmp.Or(b.kind, domain.LayoutStages) }

func (b *Board) Past() Past { return b.layout.past() }

// Path returns where the board is, for display: within a repository, relative to its directory.
func (b *Board) Path() string {
	if dir := b.top(); dir != "." {
		return dir
	}
	for _, work := range workDirs {
		if strings.HasSuffix(b.dir, string(filepath.Separator)+work) {
			return filepath.ToSlash(work)
		}
	}
	return filepath.Base(b.dir)
}

// top returns the directory that contains everything on the board.
func (b *Board) top() string {
	paths := b.Past().Paths
	dir := paths[0]
	for _, p := range paths[1:] {
		for dir != "." && !strings.HasPrefix(p+"/", dir+"/") {
			dir = path.Dir(dir)
		}
	}
	return dir
}

func (b *Board) Writable() bool { return b.allowWrites }

func (b *Board) View() *View { return b.view.Load() }

// catchUp scans everything once git is done, for which it waits briefly.
func (b *Board) catchUp() {
	for end := time.Now().Add(readerPatience); !b.rescanned(time.Now().Before(end)); time.Sleep(gitPoll) {
	}
}

func (b *Board) read(id string, rescan func()) (details *Details, err error) {
	err = b.locate(id, rescan, func(story Story, stage string) (err error) {
		details, err = b.layout.read(story, stage)
		return err
	})
	return details, err
}

// locate calls do with a story and its stage, and again after a rescan if do's error is fs.ErrNotExist. It returns
// NotFound for a story that is not on the board.
func (b *Board) locate(id string, rescan func(), do func(story Story, stage string) error) error {
	for range 2 {
		view := b.own.Load()
		if err := cmp.Or(view.Err, b.checkLink()); err != nil {
			return Unavailable(err)
		}
		story, stage, found := view.Find(id)
		if !found {
			break
		}
		if err := do(story, stage); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		rescan()
	}
	return domain.Errorf(domain.NotFound, "no story %q on the board", limit(id))
}

// rescanned scans everything, unless it may wait and git is at work: half a checkout would look like moves.
func (b *Board) rescanned(mayWait bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if tree, inTree := git.Find(b.dir); inTree && (mayWait || b.place != nil) && b.gitIsAtWork(tree) {
		return !mayWait || tree.IsUnderWay() // another work tree's board stays as it was
	}
	b.rescanAll()
	return true
}

// rescanAll scans everything, unless that is to stay as it was. If it fails, the view says so.
func (b *Board) rescanAll() {
	if !b.isFrozen() {
		_, _ = b.scan(nil, false)
	}
}

// scan reads the files that changed, and returns when to scan again even if nothing seems to change, zero for never. An
// error means that the directory could not be read: the view then keeps its stages and shows the error. A patient scan
// is discarded if git has started working meanwhile.
func (b *Board) scan(changed fileSet, patient bool) (again time.Time, err error) {
	tree, inTree := git.Find(b.dir)
	if inTree && b.head.Checkout(tree) {
		b.tracker.checkout, changed = true, nil
	}
	view := b.own.Load()
	isRead := view != nil && view.Err == nil
	if !isRead {
		changed = nil
	}
	if changed == nil {
		b.watched = b.watcher.add != nil
	}
	var stages []*stage
	if err = b.checkLink(); err == nil {
		stages, err = b.layout.scan(changed)
	}
	b.report("read "+b.dir, err)
	if err != nil {
		if isRead {
			b.settle(b.newView(view.Stages, err), nil)
		}
		return time.Time{}, err
	}
	for _, stage := range stages {
		b.report("read stage "+stage.name, stage.err)
	}
	if patient && inTree && (b.gitIsAtWork(tree) || b.head.IsBehind(tree)) {
		return time.Now().Add(gitPoll), nil
	}
	if b.tracker.inHead = nil; inTree && b.Layout() == domain.LayoutStages {
		b.tracker.inHead = b.inHead
	}
	found := b.tracker.update(time.Now(), stages)
	b.tracker.checkout = false
	var next *View
	if b.takeFaults(time.Now()) || found.view || !isRead {
		next = b.newView(b.tracker.board(), nil)
	}
	if due := b.layout.due(); !due.IsZero() {
		found.rescanAt(due)
	}
	b.settle(next, found.notifications)
	return found.rescan, nil
}

func (b *Board) newView(stages []Stage, err error) *View {
	return &View{
		Stages: stages, Faults: b.known[:min(len(b.known), maxFaults)], Err: err, CheckedOut: b.tracker.checkedOut,
		Version: b.nextVersion(), replaced: make(chan struct{}),
	}
}

func (b *Board) nextVersion() string { return b.instance + "-" + strconv.FormatInt(b.views.Add(1), 10) }

// show replaces the view, announces what is new, and wakes the waiting readers.
func (b *Board) show(next *View, news []feed.Notification) {
	old := next
	if next != nil {
		old = b.view.Swap(next)
	}
	if len(news) > 0 {
		b.record(news...)
	}
	if old != nil {
		close(old.replaced)
	}
}

// report logs a failure when it begins and when it ends.
func (b *Board) report(what string, err error) {
	switch {
	case err != nil && !b.faults[what]:
		b.faults[what] = true
		b.log.Warn("board: cannot "+what, "error", err)
	case err == nil && b.faults[what]:
		delete(b.faults, what)
		b.log.Info("board: can " + what + " again")
	}
}
