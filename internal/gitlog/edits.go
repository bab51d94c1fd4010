package gitlog

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"github.com/fsnotify/fsnotify"

	"switchyard/internal/git"
)

// maxWatched is how many directories of all work trees are watched at most, and watchShare which part of a user's
// watches that may be: other projects and programs of the user need some, too.
const maxWatched, watchShare = 6000, 20

// userWatches has how many watches a user has: 8,192 on small machines.
const userWatches = "/proc/sys/fs/inotify/max_user_watches"

// edits notices what is edited in work trees, in directories that git knows. On systems other than Linux, where a watch
// takes a descriptor for each file or a buffer for each directory, it notices nothing.
type edits struct {
	mu      sync.Mutex
	watcher *fsnotify.Watcher
	most    int               // how many directories are watched at most
	trees   map[string]string // the work tree of each watched directory
	edited  map[string]bool   // work trees
}

func (e *edits) open() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.trees, e.edited = map[string]string{}, map[string]bool{}
	if runtime.GOOS != "linux" {
		return
	}
	e.watcher, _ = fsnotify.NewWatcher() // without one, work trees are looked at from time to time
}

func mostWatched() int {
	text, _ := os.ReadFile(userWatches)
	all, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	return min(maxWatched, all/watchShare)
}

func (e *edits) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.watcher != nil {
		_ = e.watcher.Close() // it fails only if it is already closed
		e.watcher = nil
	}
}

// run notes what is edited until ctx ends.
func (e *edits) run(ctx context.Context) error {
	w := e.watcher
	if w == nil {
		return nil
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case _, open := <-w.Errors: // mainly that events were lost
			if !open {
				return nil
			}
			e.mu.Lock()
			for _, tree := range e.trees {
				e.edited[tree] = true
			}
			e.mu.Unlock()
		case event, open := <-w.Events:
			if !open {
				return nil
			}
			e.mu.Lock()
			if tree, is := e.trees[filepath.Dir(event.Name)]; is {
				e.edited[tree] = true
			}
			if event.Has(fsnotify.Remove | fsnotify.Rename) {
				delete(e.trees, event.Name) // if it was a directory, its watch has ended
			}
			e.mu.Unlock()
		}
	}
}

// isPending reports whether any work tree has been edited.
func (e *edits) isPending() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.edited) > 0
}

// has reports whether a work tree has been edited since it was forgotten.
func (e *edits) has(tree string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.edited[tree]
}

func (e *edits) forget(tree string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.edited, tree)
}

// mark says that a work tree is to be looked at.
func (e *edits) mark(tree string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.edited != nil {
		e.edited[tree] = true
	}
}

// watch watches these directories, given with their work trees, and no others. It returns those of the work trees whole
// of which none is left out. One that is known counts as edited if one of its directories is new: something may have
// changed there before.
func (e *edits) watch(wanted map[string]string, whole map[string]bool, known map[string]status) map[string]bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.watcher == nil {
		return nil
	}
	maps.DeleteFunc(e.edited, func(tree string, _ bool) bool { _, is := whole[tree]; return !is })
	for dir := range e.trees {
		if wanted[dir] != e.trees[dir] {
			_ = e.watcher.Remove(dir) // it fails if the watch has ended with the directory
			delete(e.trees, dir)
		}
	}
	for dir, tree := range wanted {
		if e.trees[dir] != "" {
			continue
		}
		switch err := e.watcher.Add(dir); {
		case err == nil:
			e.trees[dir] = tree
			if _, is := known[tree]; is {
				e.edited[tree] = true
			}
		case !errors.Is(err, fs.ErrNotExist): // the work tree need not have each directory of the base
			delete(whole, tree)
		}
	}
	return whole
}

// watchEdits watches the directories of the base, and those of what differs from it, in all work trees.
func (w *Work) watchEdits() {
	wanted, whole := map[string]string{}, map[string]bool{}
	for _, p := range w.facts.places {
		if p.worktree == "" {
			continue
		}
		s := w.statuses[p.worktree]
		whole[p.worktree] = len(w.facts.dirs) < maxWatched && len(p.numbers.paths) <= maxPathspec &&
			len(s.dirs) <= maxPathspec
		add := func(dir string) bool { // until one that is wanted already
			dir = filepath.Join(p.tree.Dir, dir)
			if _, is := wanted[dir]; is {
				return false
			}
			if len(wanted) >= w.edits.most {
				whole[p.worktree] = false
				return false
			}
			wanted[dir] = p.worktree
			return true
		}
		add("")
		for _, dir := range w.facts.dirs {
			add(dir)
		}
		for _, dir := range append(p.numbers.paths.list(), s.dirs.list()...) {
			for dir = path.Dir(dir); dir != "." && add(dir); dir = path.Dir(dir) {
			}
		}
	}
	w.watched = w.edits.watch(wanted, whole, w.statuses)
}

// readDirs reads which directories the base has, at most maxWatched.
func (w *Work) readDirs(ctx context.Context, r repository, f *facts) error {
	if w.facts != nil && w.facts.head == f.head {
		f.dirs = w.facts.dirs
		return nil
	}
	return r.Records(ctx, nil, 0, func(record []byte) error {
		if f.dirs = append(f.dirs, string(record)); len(f.dirs) == maxWatched {
			return git.ErrEnough
		}
		return nil
	}, "ls-tree", "-r", "-d", "-z", "--name-only", "--full-tree", f.head)
}
