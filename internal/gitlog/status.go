package gitlog

import (
	"context"
	"path"
	"sync"
	"time"

	"switchyard/internal/git"
)

// status is what a work tree has beyond its head.
type status struct {
	at      time.Time     // when it was read
	took    time.Duration // how long that took
	of      string        // the merge base that the numbers refer to
	state   string        // the tree's state then
	count   int           // the number of changed and untracked files
	dirty   bool          // tracked files differ
	numbers numbers
	dirs    paths // one of these files in each directory
}

// readStatuses reads the status of work trees that may have changed.
func (w *Work) readStatuses(ctx context.Context, r repository) error {
	shared := sync.OnceValues(func() (git.Repository, error) { return r.WithoutDrivers(ctx) })
	next := map[string]status{}
	var all, edited time.Duration // how long those take
	for tree, s := range w.statuses {
		if all += s.took; w.edits.has(tree) {
			edited += s.took
		}
	}
	for _, p := range w.facts.places {
		if p.worktree == "" {
			continue
		}
		known, is := w.statuses[p.worktree]
		state := p.head + p.mergeBase + p.tree.State()
		age := max(w.statusAge, statusFactor*all)
		switch {
		case w.edits.has(p.worktree):
			age = min(age, max(w.editAge, workFactor*edited))
		case w.watched[p.worktree]:
			age = max(age, watchedAge)
		}
		if is && known.state == state && time.Since(known.at) < age {
			next[p.worktree] = known
			continue
		}
		now := time.Now()
		w.edits.forget(p.worktree)
		safe, err := shared()
		if err != nil {
			return err
		}
		s, err := readStatus(ctx, safe, p)
		if err != nil {
			w.edits.mark(p.worktree)
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
	last := ""
	changed := p.numbers.paths
	err = r.Records(ctx, nil, 0, func(record []byte) error {
		switch {
		case origin: // the former name of a renamed file
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
		if dir := path.Dir(string(record[3:])); dir != last || s.count == 0 {
			s.dirs.add(record[3:])
			last = dir
		}
		s.count++
		return nil
	}, "status", "--porcelain", "-z", "--untracked-files=all")
	if err != nil || !s.dirty || p.mergeBase == "" {
		return s, err
	}
	// All other files are as at the merge base; without the list git would look at all of them again.
	args := append([]string{"diff", "-M", "--numstat", "-z", p.mergeBase, "--"}, changed.list()...)
	err = r.Records(ctx, nil, 0, func(record []byte) error { s.numbers.add(record); return nil }, args...)
	return s, err
}

// workFactor is how many times longer than the reading the pause after it is, up to maxWorkPause; after a long reading
// it is slowFactor times as long.
const workFactor, slowFactor, maxWorkPause = 20, 4, 4 * time.Second

// rest returns the pause after a reading: longer with each failure of git, which may be permanent.
func (w *Work) rest(took time.Duration) time.Duration {
	if w.failures > 0 {
		return min(max(workFactor*took, maxWorkPause<<min(w.failures, 10)), maxPause)
	}
	return min(workFactor*took, max(maxWorkPause, slowFactor*took))
}

// statusAge is how old a status may be where edits are not noticed, or else statusFactor times as long as reading all
// of them takes. watchedAge is how old one may be where they are, since a watch may miss some, and editAge after an
// edit: something may be written all the time.
const statusAge, statusFactor, watchedAge, editAge = 4 * time.Second, 150, 5 * time.Minute, 2 * time.Second
