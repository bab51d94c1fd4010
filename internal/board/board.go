// Package board watches the work items of one project: files in stage directories. It knows how to look, what changed
// between two looks, and when to look again. It must never know who reads what it finds.
package board

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/feed"
)

// When to look again. A look at 100 items takes a fraction of a millisecond, one at 10,000 about 20 ms.
const (
	// A change is waited on for settleFactor times what the last look took, within these bounds: one look serves a
	// burst, and a board that changes without end costs a fifth of a core at most.
	settleFactor = 4
	settleLeast  = 10 * time.Millisecond
	settleMost   = 50 * time.Millisecond
	// Without any change it looks at rescan: a watch may miss what happens on a network file system.
	rescan = 5 * time.Second
	// While not all can be watched it looks at unwatchedRescan, or at unwatchedFactor times what the last look took.
	unwatchedRescan = 500 * time.Millisecond
	unwatchedFactor = 20
)

// Options are what a Board is made of.
type Options struct {
	// Dir is the work directory. The default stages are made in it if it has none.
	Dir string
	Log *slog.Logger
	// Record takes what happened, in one call for each look that found something. View shows it already then.
	Record func(...feed.Notification)
}

// View is a consistent state of a board. It never changes: another state is another View.
type View struct {
	// Stages are in the order of their numbers, their items in the order of the numbers that their ids begin with.
	Stages []domain.Stage
}

// Board is a work directory under watch.
type Board struct {
	log     *slog.Logger
	record  func(...feed.Notification)
	view    atomic.Pointer[View]
	scanner scanner
	tracker tracker
	faults  map[string]bool // what went wrong at the last look

	openWatcher func() (watcher, error)
	watcher     watcher // zero while there is none
	watched     bool    // everything was watched before the last look read it
}

// Open looks at the work directory for the first time: what stands there is no news.
// It returns an error when the directory cannot be read or the default stages cannot be made.
func Open(o Options) (*Board, error) {
	if err := makeStages(o.Dir); err != nil {
		return nil, err
	}
	b := &Board{log: o.Log, record: o.Record, faults: map[string]bool{}, openWatcher: openWatcher}
	b.scanner = scanner{dir: o.Dir, stages: map[string]*stage{}, watch: b.watch}
	if _, err := b.look(); err != nil {
		return nil, err
	}
	return b, nil
}

// View returns the board as the last look found it.
func (b *Board) View() *View { return b.view.Load() }

// Run looks whenever something may have changed, until ctx is cancelled, and then returns nil.
// Only one Run may be under way; another may follow it.
func (b *Board) Run(ctx context.Context) error {
	defer b.closeWatcher()
	next, settle := time.Now(), settleLeast
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		var open bool
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
			b.watchAgain()
			began := time.Now()
			again, err := b.look()
			b.note("read "+b.scanner.dir, err)
			took := time.Since(began)
			settle = min(max(settleFactor*took, settleLeast), settleMost)
			next = began.Add(took + b.pause(took))
			if !again.IsZero() && again.Before(next) {
				next = again
			}
			timer.Reset(time.Until(next))
			continue
		case _, open = <-b.watcher.events:
		case _, open = <-b.watcher.errors: // above all, that events were lost
		}
		if !open {
			b.closeWatcher()
		}
		if soon := time.Now().Add(settle); soon.Before(next) {
			next = soon
			timer.Reset(settle)
		}
	}
}

// look takes in how the work directory is now, and returns when to look again though nothing seems to change; zero
// for never. An error means that the directory could not be read: then the board is as it was.
func (b *Board) look() (again time.Time, err error) {
	b.watched = b.watcher.add != nil
	stages, err := b.scanner.scan()
	if err != nil {
		return time.Time{}, err
	}
	for _, stage := range stages {
		b.note("read stage "+stage.name, stage.err)
	}
	found := b.tracker.update(time.Now(), stages)
	if found.changed || b.view.Load() == nil {
		b.view.Store(&View{Stages: b.tracker.board()})
	}
	if len(found.notifications) > 0 {
		b.record(found.notifications...)
	}
	return found.again, nil
}

// pause is how long it may wait for an event after a look that took so long.
func (b *Board) pause(took time.Duration) time.Duration {
	if b.watched {
		return rescan
	}
	return max(unwatchedRescan, unwatchedFactor*took)
}

// note logs what cannot be done once, and that it can be done again.
func (b *Board) note(what string, err error) {
	switch {
	case err != nil && !b.faults[what]:
		b.faults[what] = true
		b.log.Warn("board: cannot "+what, "error", err)
	case err == nil && b.faults[what]:
		delete(b.faults, what)
		b.log.Info("board: can " + what + " again")
	}
}
