package board

import (
	"context"
	"time"
)

// When to scan again. A scan of 100 items takes a fraction of a millisecond, one of 10,000 about 20 ms.
const (
	// After a change it waits for debounceFactor times what the last scan took, within these bounds: one scan serves a
	// burst, and a board that changes without end costs a fifth of a core at most.
	debounceFactor = 4
	debounceMin    = 10 * time.Millisecond
	debounceMax    = 50 * time.Millisecond
	// Without any change it scans after rescan: a watch may miss what happens on a network file system.
	rescan = 5 * time.Second
	// While not all can be watched it scans after unwatchedRescan, or unwatchedFactor times what the last scan took.
	unwatchedRescan = 500 * time.Millisecond
	unwatchedFactor = 20
)

// Run scans whenever something may have changed, until ctx is cancelled, and then returns nil.
// Only one Run may be under way; another may follow it.
func (b *Board) Run(ctx context.Context) error {
	defer b.closeWatcher()
	next, debounce := time.Now(), debounceMin
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		var open bool
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
			began := time.Now()
			again, pause := b.rescan()
			took := time.Since(began)
			debounce = min(max(debounceFactor*took, debounceMin), debounceMax)
			next = began.Add(took + pause)
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
		if soon := time.Now().Add(debounce); soon.Before(next) {
			next = soon
			timer.Reset(debounce)
		}
	}
}

// rescan scans, and returns when to scan again (zero for never) and how long it may wait for an event until then.
func (b *Board) rescan() (again time.Time, pause time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.watchAgain()
	began := time.Now()
	again, _ = b.scan() // its error is logged, and the view has it
	if b.watched {
		return again, rescan
	}
	return again, max(unwatchedRescan, unwatchedFactor*time.Since(began))
}
