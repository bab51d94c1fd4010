package board

import (
	"context"
	"io/fs"
	"path/filepath"
	"slices"
	"syscall"

	"switchyard/internal/domain"
	"switchyard/internal/files"
	"switchyard/internal/git"
)

// checkLink returns an error if a symbolic link in a linked work tree leads to another board.
func (b *Board) checkLink() error {
	if b.place == nil || b.place.Worktree == "" || files.Resolved(b.dir) == b.dir {
		return nil
	}
	return &fs.PathError{Op: "open", Path: b.dir, Err: syscall.ELOOP}
}

func errNoTree(branch string) error {
	return domain.Errorf(domain.Conflict, "the story stands on the branch %s, which no work tree has: it is not written",
		limit(branch))
}

// target returns the place in which to write a change, and the change to make there.
func (b *Board) target(ctx context.Context, id string, c Change) (where, Change, error) {
	stands := b.standsIn(id)
	at := stands
	if c.Worktree != nil {
		var err error
		if at, err = b.tree(*c.Worktree, id); err != nil && b.options.Refresh != nil {
			b.options.Refresh(ctx)
			at, err = b.tree(*c.Worktree, id)
		}
		if err != nil {
			return at, c, err
		}
	}
	to := b
	if at.board != nil {
		if to = at.board; at.worktree == "" {
			return at, c, errNoTree(at.branch)
		}
	}
	if at.member != stands.member { // the version is that of the story where it stands
		details, err := b.Read(id)
		if err == nil && details.Version != c.Version {
			err = errChanged
		}
		if err == nil {
			details, err = to.readOwn(at.id)
		}
		if err == nil && details.Fault != "" {
			err = cannotWrite(details.Fault)
		}
		if err != nil {
			return at, c, err
		}
		c.Version = details.Version
	}
	j := &b.joined
	j.mu.Lock()
	defer j.mu.Unlock()
	if c.Stage == nil || len(j.members) == 0 || at.member != nil && at.Base == nil || !b.View().has(*c.Stage) {
		return at, c, nil // an invalid stage is refused where it is written
	}
	if after := b.stands(id, at.member, *c.Stage); after.stage != *c.Stage {
		return at, c, domain.Errorf(domain.Conflict, "the story would still stand in %s, where %s has it",
			after.stage, b.nameOf(after.place))
	}
	return at, c, nil
}

func (b *Board) nameOf(m *member) string {
	switch {
	case m == nil:
		tree, _ := git.Find(b.dir)
		return "the work tree " + tree.Dir
	case m.Worktree == "":
		return "the branch " + m.Branch
	}
	return "the work tree " + m.Worktree
}

// tree returns the place of a story in the work tree at a path. It returns Invalid if there is no such work tree, and
// NotFound if it has no board.
func (b *Board) tree(path, id string) (where, error) {
	same := func(other string) bool {
		resolved, err := filepath.EvalSymlinks(path)
		return other != "" && (path == other || err == nil && resolved == other)
	}
	own, inTree := git.Find(b.dir)
	b.joined.mu.Lock()
	defer b.joined.mu.Unlock()
	if inTree && same(own.Dir) {
		return b.at(nil, id), nil
	}
	for _, m := range b.joined.members {
		if same(m.Worktree) {
			return b.at(m, id), nil
		}
	}
	if slices.ContainsFunc(b.joined.without, same) {
		return where{}, domain.Errorf(domain.NotFound, "the work tree has no such story")
	}
	return where{}, domain.Errorf(domain.Invalid, "worktree: %q is none of the repository's", limit(path))
}
