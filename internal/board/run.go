package board

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/fsnotify/fsnotify"

	"switchyard/internal/git"
)

// When to scan again. A scan of 100 items takes a fraction of a millisecond, one of 10,000 about 10 ms.
const (
	// After a change it waits for debounce, so that one scan serves a burst, and until restFactor times the duration of
	// the last scan, at most restMax, is over: a board that changes constantly costs about a fifth of a core while a
	// scan takes under 8 ms.
	debounce   = 10 * time.Millisecond
	restFactor = 4
	restMax    = 30 * time.Millisecond
	// Without any change it scans everything after rescanMin or rescanFactor times the duration of the last such scan,
	// whichever is longer, but after rescanMax at the latest: watches may miss changes on a network file system. Linked
	// work trees may be many: these wait for rescanMax.
	rescanMin    = 5 * time.Second
	rescanFactor = 100
	rescanMax    = time.Minute
	// While something cannot be watched, it scans after unwatchedRescan or unwatchedFactor times the duration of the
	// last scan, whichever is longer.
	unwatchedRescan = 500 * time.Millisecond
	unwatchedFactor = 20
)

// Run scans whenever something may have changed, until ctx is cancelled, and then returns nil. After an event it reads
// only the file concerned, otherwise everything. Run must not be called concurrently, but may be called again.
func (b *Board) Run(ctx context.Context) error {
	defer b.closeWatcher()
	b.running.Store(&ctx)
	next := time.Now()
	everything := next   // when to scan all stages
	var rested time.Time // earliest time of the next scan
	var changed fileSet
	var gitSince time.Time // when git was first seen at work, zero while it is not
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		open := true
		select {
		case <-ctx.Done():
			return nil
		case <-b.ended():
			return nil
		case <-timer.C:
			began := time.Now()
			if wait := b.waitForGit(began, &gitSince); wait > 0 {
				next = began.Add(wait)
				timer.Reset(wait)
				continue
			}
			if !began.Before(everything) {
				changed = nil
			}
			again, pause := b.rescan(changed, gitSince.IsZero())
			took := time.Since(began)
			rested = began.Add(took + min(restFactor*took, restMax))
			if due := began.Add(took + pause); changed == nil || due.Before(everything) {
				everything = due
			}
			next, changed = everything, fileSet{}
			if !again.IsZero() && again.Before(next) {
				next = again
			}
			timer.Reset(time.Until(next))
			continue
		case event, more := <-b.watcher.events:
			if open = more; changed != nil && !b.touch(changed, event.Name) {
				changed = nil
			}
		case _, open = <-b.watcher.errors: // mainly that events were lost
			changed = nil
		}
		if !open {
			b.closeWatcher()
			changed = nil
		}
		wait := max(debounce, time.Until(rested))
		if soon := time.Now().Add(wait); soon.Before(next) {
			next = soon
			timer.Reset(wait)
		}
	}
}

// waitForGit returns how long a scan waits for git, first seen at work at since, 0 for not at all.
func (b *Board) waitForGit(now time.Time, since *time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if tree, found := git.Find(b.dir); !found || !b.gitIsAtWork(tree) {
		*since = time.Time{}
		return 0
	}
	if since.IsZero() {
		*since = now
	}
	switch {
	case now.Sub(*since) < gitPatience:
		return gitPoll
	case b.place != nil:
		return treePoll
	}
	return 0
}

func (b *Board) touch(changed fileSet, path string) bool {
	b.mu.Lock() // writes change what the layout knows, too
	defer b.mu.Unlock()
	return b.layout.touch(changed, path)
}

// rescan scans, and returns when to scan again (zero for never), and how long to wait for events before scanning
// everything.
func (b *Board) rescan(changed fileSet, patient bool) (again time.Time, pause time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.watcher.add == nil {
		var err error
		b.watcher, err = b.openWatcher()
		b.report("watch for changes", err)
		changed = nil
	}
	began := time.Now()
	again, _ = b.scan(changed, patient) // its error is logged, and the view has it
	took := time.Since(began)
	switch {
	case !b.watched:
		return again, max(unwatchedRescan, unwatchedFactor*took)
	case changed != nil, b.place != nil: // the duration for one file says nothing about a scan of everything
		return again, rescanMax
	}
	return again, min(max(rescanMin, rescanFactor*took), rescanMax)
}

// watcher is the part of fsnotify that the board needs. The kind of an event does not matter: any means that a scan is
// due.
type watcher struct {
	events <-chan fsnotify.Event
	errors <-chan error
	add    func(path string) error
	close  func() error
}

// openWatcher fails if the machine has no inotify, or no instances of it left.
func openWatcher() (watcher, error) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return watcher{}, err
	}
	return watcher{w.Events, w.Errors, w.Add, w.Close}, nil
}

func (b *Board) closeWatcher() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.watcher.close != nil {
		_ = b.watcher.close() // it fails only if it is already closed
	}
	b.watcher = watcher{}
}

// watch watches the directory now at this path. If it is watched already, that costs a system call.
func (b *Board) watch(path string) {
	if b.watcher.add == nil {
		return
	}
	err := b.watcher.add(path)
	b.watched = b.watched && err == nil
	if !errors.Is(err, fs.ErrNotExist) {
		b.report("watch "+path, err)
	}
}

// A scan waits while git is at work, since a rebase moves stories there and back, but gitPatience at most, since a
// conflict may have stopped it. Meanwhile it checks every gitPoll whether git is done.
const (
	gitPatience = 10 * time.Second
	gitPoll     = 10 * time.Millisecond
	// treePoll is how often another work tree is checked after that; it stays as it was until git is done.
	treePoll = 500 * time.Millisecond
	// gitGap is how long after writing the index a checkout may move HEAD: until then it looks like moves.
	gitGap = 200 * time.Millisecond
	// readerPatience is how long a reader of a story waits for git: less than a gateway waits for the answer.
	readerPatience = time.Second
)

// gitIsAtWork reports whether git is changing the work tree.
func (b *Board) gitIsAtWork(tree git.Tree) bool {
	age := time.Since(tree.IndexWritten())
	return tree.IsBusy() || b.place != nil && tree.IsUnderWay() || age >= 0 && age < gitGap && !b.head.IsBehind(tree)
}
