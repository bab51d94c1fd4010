package board

import (
	"cmp"
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
	// lockWait is how long a lock of another tool is waited for, lockPoll how often it is tried, and lockAge when it
	// counts as left behind: tools touch theirs.
	lockWait = 5 * time.Second
	lockPoll = 20 * time.Millisecond
	lockAge  = 10 * time.Second
)

// lock makes the lock directory of the layout's tool.
func (s *units) lock(id string) (unlock func(), err error) {
	known := s.index.Load()
	if known.rules.lock == nil || known.units[id] == "" {
		return func() {}, nil
	}
	root, err := os.OpenRoot(s.dir)
	if err != nil {
		return nil, writeError(err)
	}
	name := known.rules.lock(id)
	for until := time.Now().Add(lockWait); ; time.Sleep(lockPoll) {
		err := root.Mkdir(name, 0o777)
		if errors.Is(err, fs.ErrNotExist) {
			if err = root.Mkdir(path.Dir(name), 0o777); err == nil || errors.Is(err, fs.ErrExist) {
				err = root.Mkdir(name, 0o777)
			}
		}
		if err == nil {
			return func() {
				_ = root.Remove(name) // it may have been taken over
				root.Close()
			}, nil
		}
		if info, found := root.Lstat(name); found == nil && time.Since(info.ModTime()) > lockAge {
			_ = root.Remove(name)
			continue
		}
		if !errors.Is(err, fs.ErrExist) || time.Now().After(until) {
			root.Close()
			if errors.Is(err, fs.ErrExist) {
				err = domain.Errorf(domain.Conflict, "the story is locked by another tool")
			}
			return nil, writeError(err)
		}
	}
}

func (s *units) change(story Story, _ string, c Change) (changed fileSet, err error) {
	tree, err := openTree(s.dir)
	if err != nil {
		return nil, err
	}
	defer tree.close()
	e, from, err := s.find(tree, story.ID)
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
	if to != from || c.Task != nil {
		if err := s.write(tree, e, r, known, from, to, c.Task); err != nil {
			return nil, err
		}
	}
	if c.Blocked != nil {
		if r.blocked != "" {
			return nil, domain.Errorf(domain.Invalid, "blocked: the board's own tool says so; it is to be changed there")
		}
		exists := func(id string) bool { return known.units[id] != "" }
		if err := s.notes.set(story.ID, strings.TrimSpace(*c.Blocked), exists); err != nil {
			return nil, err
		}
	}
	if known.rules.source != nil || c.Blocked != nil {
		return nil, nil
	}
	return fileSet{known.units[story.ID]: {r.path: true, cmp.Or(r.status, r.path): true}}, nil
}

// write changes the file of a record that has its boxes or its stage.
func (s *units) write(tree *tree, e entry, r *record, known *index, from, to int, task *TaskChange) error {
	if task == nil {
		refusal := ""
		for _, i := range []int{from, to} {
			if i >= 0 && refusal == "" {
				refusal = known.stages[i].refusal
			}
		}
		if refusal = cmp.Or(refusal, known.rules.refusal); refusal != "" {
			return domain.Errorf(domain.Invalid, "stage: %s", refusal)
		}
	}
	name := r.path
	switch {
	case task == nil:
		name = cmp.Or(r.status, r.path)
	case len(r.tasks) == 0: // nor need there be a file
		_, err := withTask(nil, nil, *task)
		return err
	}
	file := &storyFile{}
	if known.rules.source == nil {
		var err error
		if file, err = tree.file(name); err != nil {
			return err
		}
	}
	var content []byte
	var err error
	if task != nil {
		content, err = withTask(file.content, r.tasks, *task)
	} else {
		content, err = known.rules.move(e.id, r, file.content, known.stages[to])
	}
	if err != nil || known.rules.source != nil {
		return err
	}
	dir, err := tree.open(path.Dir(name))
	if err != nil {
		return err
	}
	return put(dir, dir, path.Base(name), file, content)
}
