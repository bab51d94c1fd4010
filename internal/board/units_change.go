package board

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"switchyard/internal/domain"
)

const (
	// lockWait is how long to wait for another tool's lock, lockPoll how often to try it, and lockAge when it counts as
	// left behind: tools keep touching theirs.
	lockWait = 5 * time.Second
	lockPoll = 20 * time.Millisecond
	lockAge  = 10 * time.Second
)

// lock makes the lock directory of the layout's tool. One that was left behind is taken over, but never with what is in
// it.
func (s *units) lock(ctx context.Context, id string) (unlock func(), err error) {
	known := s.index.Load()
	p, is := known.places[id]
	if known.rules.lock == nil || !is {
		return func() {}, nil
	}
	root, err := os.OpenRoot(s.dir)
	if err != nil {
		return nil, writeError(err)
	}
	name := known.rules.lock(p.story().id)
	waited, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	for {
		err := root.Mkdir(name, 0o777)
		if errors.Is(err, fs.ErrNotExist) { // create one directory above, not the whole board
			if err = root.Mkdir(path.Dir(name), 0o777); err == nil || errors.Is(err, fs.ErrExist) {
				err = root.Mkdir(name, 0o777)
			}
		}
		if err == nil {
			ours, _ := root.Lstat(name)
			return func() {
				if now, err := root.Lstat(name); err == nil && os.SameFile(ours, now) { // otherwise it was taken over
					_ = root.Remove(name)
				}
				root.Close()
			}, nil
		}
		info, gone := root.Lstat(name)
		if gone == nil && info.IsDir() && time.Since(info.ModTime()) > lockAge && root.Remove(name) == nil {
			continue
		}
		if !errors.Is(err, fs.ErrExist) {
			root.Close()
			return nil, writeError(err)
		}
		select {
		case <-waited.Done():
			root.Close()
			return nil, domain.Errorf(domain.Conflict, "the story is locked by another tool")
		case <-time.After(lockPoll):
		}
	}
}

func (s *units) change(story Story, _ string, c Change) (changed fileSet, err error) {
	tree, err := openTree(s.dir)
	if err != nil {
		return nil, err
	}
	defer tree.close()
	e, from, err := s.find(tree, unitCache{}, story.ID)
	if err != nil {
		return nil, err
	}
	r, known := e.record(), s.index.Load()
	if r.hash(e.stage) != c.Version {
		return nil, errChanged
	}
	if c.MergeFailure != nil && *c.MergeFailure != "" {
		return nil, errNotCleared // these boards have none
	}
	to := from
	if c.Stage != nil {
		to = slices.IndexFunc(s.stages, func(st *stage) bool { return st.name == *c.Stage })
		if to < 0 {
			return nil, domain.Errorf(domain.Invalid, "stage: there is no stage %q", limit(*c.Stage))
		}
	}
	switch {
	case c.Task != nil:
		err = tree.tick(r, *c.Task)
	case to != from:
		err = known.move(tree, e.id, r, from, to)
	}
	if err != nil {
		return nil, err
	}
	if c.Blocked != nil {
		if r.blocked != "" {
			return nil, domain.Errorf(domain.Invalid, "blocked: the board's own tool says so; it is to be changed there")
		}
		exists := func(id string) bool { _, is := known.places[id]; return is }
		if err := s.notes.set(story.ID, strings.TrimSpace(*c.Blocked), exists); err != nil {
			return nil, err
		}
	}
	if known.rules.source != nil || c.Blocked != nil {
		return nil, nil
	}
	return fileSet{known.unit(story.ID): {r.path: true, cmp.Or(r.status, r.path): true}}, nil
}

// tick changes a box of a story, and makes the box's file the record's path.
func (t *tree) tick(r *record, box TaskChange) error {
	if box.Path == r.path && len(r.tasks) > 0 && r.tasks[0].Path == "" {
		box.Path = ""
	}
	if !slices.ContainsFunc(r.tasks, box.is) { // the file need not even exist
		_, err := withTask(nil, nil, box)
		return err
	}
	r.path = cmp.Or(box.Path, r.path)
	return t.rewrite(r.path, func(content []byte) ([]byte, error) { return withTask(content, r.tasks, box) })
}

func (x *index) move(tree *tree, id string, r *record, from, to int) error {
	refusal := cmp.Or(x.stages[to].refusal, x.rules.refusal)
	if to >= len(x.rules.stages) {
		refusal = cmp.Or(refusal, "'"+limit(x.stages[to].key)+"' is no status of the board's own")
	}
	if from >= 0 {
		refusal = cmp.Or(x.stages[from].refusal, refusal)
	}
	if refusal != "" {
		return domain.Errorf(domain.Invalid, "stage: %s", refusal)
	}
	move := func(content []byte) ([]byte, error) { return x.rules.move(id, r, content, x.stages[to]) }
	if x.rules.source != nil { // its tool writes it
		_, err := move(nil)
		return err
	}
	return tree.rewrite(cmp.Or(r.status, r.path), move)
}
