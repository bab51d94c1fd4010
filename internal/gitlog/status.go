package gitlog

import (
	"context"
	"sync"
	"time"

	"switchyard/internal/git"
)

// status is what a work tree has beyond its head.
type status struct {
	at      time.Time     // when it was read
	took    time.Duration // that
	of      string        // the merge base that the numbers are of
	state   string        // of the tree then
	count   int           // of changed and untracked files
	dirty   bool          // tracked files differ
	numbers numbers
}

// readStatuses reads those of work trees that may have changed.
func (w *Work) readStatuses(ctx context.Context, r repository) error {
	shared := sync.OnceValues(func() (git.Repository, error) { return r.WithoutDrivers(ctx) })
	next := map[string]status{}
	var took time.Duration
	for _, s := range w.statuses {
		took += s.took
	}
	age := max(statusAge, statusFactor*took)
	for _, p := range w.facts.places {
		if p.worktree == "" {
			continue
		}
		known, is := w.statuses[p.worktree]
		state := p.head + p.mergeBase + p.tree.State()
		if is && known.state == state && time.Since(known.at) < age {
			next[p.worktree] = known
			continue
		}
		now := time.Now()
		safe, err := shared()
		if err != nil {
			return err
		}
		s, err := readStatus(ctx, safe, p)
		if err != nil {
			return err
		}
		s.at, s.took, s.state, s.of = now, time.Since(now), state, p.mergeBase
		next[p.worktree] = s
	}
	w.statuses = next
	return nil
}

func readStatus(ctx context.Context, shared git.Repository, p *place) (s status, err error) {
	r, err := shared.Of(ctx, p.tree)
	if err != nil {
		return s, err
	}
	origin := false
	changed := p.numbers.paths
	err = r.Records(ctx, nil, 0, func(record []byte) error {
		switch {
		case origin: // of what was renamed
			changed.add(record)
			origin = false
			return nil
		case len(record) < 4:
			return nil
		case record[0] != '?':
			s.dirty = true
			changed.add(record[3:])
			origin = record[0] == 'R' || record[0] == 'C'
		case record[len(record)-1] == '/': // a repository, or another work tree
			return nil
		}
		s.count++
		return nil
	}, "status", "--porcelain", "-z", "--untracked-files=all")
	if err != nil || !s.dirty || p.mergeBase == "" {
		return s, err
	}
	// What is not named is as at the merge base; git would look at all of it again.
	args := append([]string{"diff", "-M", "--numstat", "-z", p.mergeBase, "--"}, changed.list()...)
	err = r.Records(ctx, nil, 0, func(record []byte) error { s.numbers.add(record); return nil }, args...)
	return s, err
}

// workFactor is how many times longer than reading the pause after it is, as far as that is no longer than
// maxWorkPause: after what takes longer it is slowFactor times as long.
const workFactor, slowFactor, maxWorkPause = 20, 4, 4 * time.Second

// rest returns the pause after a reading: longer each time where git fails, as it may always do.
func (w *Work) rest(took time.Duration) time.Duration {
	if w.failures > 0 {
		return min(max(workFactor*took, maxWorkPause<<min(w.failures, 10)), maxPause)
	}
	return min(workFactor*took, max(maxWorkPause, slowFactor*took))
}

// statusAge is how old a status may be, and statusFactor how many times longer than reading all of them at least: what
// is edited in a work tree shows nowhere else.
const statusAge, statusFactor = 4 * time.Second, 150
